"""Trainings of tasks with several seeds: kept as each is finished, the best taken, all told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.nlu.examples import TaskData
from ensue.benchmarks.nlu.framing import Answers, spread
from ensue.benchmarks.nlu.systems import Answered
from ensue.records import Codec, digest_of

# By task and split.
AllAnswers = Mapping[str, Mapping[str, Answers]]


@dataclass(frozen=True)
class Trained:
    """One training: its score on dev, how it went, and its answers."""

    score: float
    fit: Mapping[str, Any]
    answers: AllAnswers

    def as_json(self) -> dict[str, Any]:
        held = {
            task: {split: [found.predictions, found.chances] for split, found in splits.items()}
            for task, splits in self.answers.items()
        }
        return {"score": self.score, "fit": dict(self.fit), "answers": held}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        held = {
            task: {split: Answers(dict(found[0]), dict(found[1])) for split, found in splits.items()}
            for task, splits in value["answers"].items()
        }
        return cls(float(value["score"]), dict(value["fit"]), held)


_TRAINED = Codec("trained", Trained.as_json, Trained.from_json)


def best_of(
    name: str,
    asked: Mapping[str, Any],
    about: Sequence[TaskData],
    seeds: Sequence[int],
    context: RunContext,
    train: Callable[[int], Trained],
) -> tuple[Trained, list[dict[str, Any]]]:
    """Train with every seed, unless the run has done so already; the first of the best, and a line on each."""
    fingerprints = {data.spec.name: data.fingerprint for data in about}
    question = {"trained": name, "asked": dict(asked), "data": fingerprints}
    runs: list[Trained] = []
    for seed in seeds:
        key = digest_of(question, seed)
        found = context.records.get(_TRAINED, key)
        if found is None:
            found = train(seed)
            context.records.add(_TRAINED, [(key, found)])
        runs.append(found)
    best = max(range(len(runs)), key=lambda place: runs[place].score)
    told = [
        {"task": name, "seed": seed, **run.fit, "chosen": False}
        for seed, run in zip(seeds, runs, strict=True)
    ]
    told[best] |= {"chosen": True, **spread([run.score for run in runs])}
    return runs[best], told


def answered(trained: Trained, fits: list[dict[str, Any]], settings: Mapping[str, Any]) -> Iterator[Answered]:
    """A training's answers, task by task; what is told of it goes with the first, what was cut with each."""
    cuts = trained.fit.get("cuts", {})
    for place, (task, splits) in enumerate(trained.answers.items()):
        predictions = {split: found.predictions for split, found in splits.items()}
        chances = {split: found.chances for split, found in splits.items() if found.chances}
        yield Answered(
            task, predictions, settings, chances, fits if place == 0 else (), notes=cuts.get(task, {})
        )
