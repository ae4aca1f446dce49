"""How tasks are trained on: when a training is slowed down and stopped, the score it is chosen by, and several seeds.

The schedule is that of GLUE's baselines (appendix A.1.2.2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

import numpy as np

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.nlu.examples import Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.framing import PredictedAnswers, spread
from ensue.benchmarks.nlu.judging import OF_GROUPS, of_counts
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from ensue.metrics import answers as texts
from ensue.metrics import classification, correlation
from ensue.records import Codec, digest_of

FIRST_RATE = 1e-3
LOWEST_RATE = 1e-5
DIVISOR = 5.0
PATIENCE = 5
_RARELY, _OFTEN = 10_000, 100
# Fewer training examples than any task has, FewGLUE's 32 among them, are a trial (--limit 20), checked oftener: four
# checks at least come before the end, and 400 updates are minutes of a BiLSTM on a CPU.
_FEWEST, _OF_A_TRIAL = 32, 10


@dataclass(frozen=True)
class Schedule:
    """How long and in what steps is trained; the paper says nothing of where gradients are clipped.

    `validate_every` None: after each pass over the data, but no oftener than every 100 updates and no more rarely
    than every 10,000, which is what the paper does with training sets that are far larger together. A trial of
    fewer than 32 training examples is checked every 10 updates.
    """

    batch: int = 128
    validate_every: int | None = None
    max_steps: int = 20_000
    rate: float = FIRST_RATE
    clip: float = 5.0

    def checks(self, examples: int) -> int:
        """After how many updates validation is due."""
        if self.validate_every is not None:
            return self.validate_every
        if examples < _FEWEST:
            return _OF_A_TRIAL
        return min(_RARELY, max(_OFTEN, -(-examples // self.batch)))


@dataclass
class Stopping:
    """Told every validation score in turn: divides the learning rate by 5 at each that is no improvement.

    Training stops once the rate has dropped below 1e-5, or after 5 checks in a row without an improvement. From
    1e-3 the rate is too low after three failures in all, so that the second rule only binds with other numbers.
    """

    rate: float = FIRST_RATE
    best: float = -math.inf
    failures: int = 0

    def improved(self, score: float) -> bool:
        """Take in a score (NaN is none); whether it is the best so far."""
        if score > self.best:
            self.best, self.failures = score, 0
            return True
        self.failures += 1
        self.rate /= DIVISOR
        return False

    @property
    def over(self) -> bool:
        """Whether training is to stop."""
        return self.rate < LOWEST_RATE or self.failures >= PATIENCE


_POSITIVE = ("1", "true")


def dev_score(spec: TaskSpec, examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> float:
    """Return the unweighted mean of the task's metrics."""
    return fmean(metrics_of(spec, examples, predictions).values())


def metrics_of(
    spec: TaskSpec, examples: Sequence[Example], predictions: Mapping[str, Prediction]
) -> dict[str, float]:
    """Return every metric of the task, without an interval; a correlation that is not defined counts as 0."""
    given = [predictions[example.id] for example in examples]
    if spec.form == "score":
        return {metric: _correlation(metric, examples, given) for metric in spec.metrics}
    if spec.form == "entity":
        return {metric: _over_mentions(metric, examples, given) for metric in spec.metrics}
    number = {label: place for place, label in enumerate(spec.labels)}
    gold = [number[str(example.gold)] for example in examples]
    counts = classification.confusion(gold, [number[str(one)] for one in given], len(spec.labels))
    right = [one == example.gold for one, example in zip(given, examples, strict=True)]
    groups = [example.judged_with for example in examples]
    return {
        metric: texts.exact_groups(groups, right) if metric == "em" else _of_classes(metric, spec, counts)
        for metric in spec.metrics
    }


def positive_class(spec: TaskSpec) -> int:
    """Return the class whose F1 counts in a task with two: 1 or true, wherever it stands."""
    return next(
        (place for place, label in enumerate(spec.labels) if label in _POSITIVE), len(spec.labels) - 1
    )


def _of_classes(metric: str, spec: TaskSpec, counts: classification.Counts) -> float:
    if metric in ("f1", "f1a") and len(spec.labels) == 2:
        return float(classification.f1(counts, positive_class(spec)))
    if metric in OF_GROUPS:
        raise EnsueError(f"{spec.name} cannot be chosen by the metric {metric}.")
    return float(of_counts(metric, len(spec.labels))(counts))


def _correlation(metric: str, examples: Sequence[Example], given: Sequence[Prediction]) -> float:
    of = {"pearson": correlation.pearson, "spearman": correlation.spearman}[metric]
    found = of([float(one) for one in given], [float(example.gold) for example in examples])  # type: ignore[arg-type]
    return found if np.isfinite(found) else 0.0


def _over_mentions(metric: str, examples: Sequence[Example], given: Sequence[Prediction]) -> float:
    of = {"f1": texts.token_f1, "em": texts.exact_match}[metric]
    pairs = zip(examples, given, strict=True)
    return fmean(texts.best_over(of, str(one), example.gold) for example, one in pairs)  # type: ignore[arg-type]


# By task and split.
AllAnswers = Mapping[str, Mapping[str, PredictedAnswers]]


@dataclass(frozen=True)
class TrainedAnswers:
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
            task: {split: PredictedAnswers(dict(found[0]), dict(found[1])) for split, found in splits.items()}
            for task, splits in value["answers"].items()
        }
        return cls(float(value["score"]), dict(value["fit"]), held)


_TRAINED = Codec("trained", TrainedAnswers.as_json, TrainedAnswers.from_json)


def best_of(
    name: str,
    asked: Mapping[str, Any],
    about: Sequence[TaskData],
    seeds: Sequence[int],
    context: RunContext,
    train: Callable[[int], TrainedAnswers],
) -> tuple[TrainedAnswers, list[dict[str, Any]]]:
    """Train with every seed, unless the run has done so already; the first of the best, and a line on each."""
    fingerprints = {data.spec.name: data.fingerprint for data in about}
    question = {"trained": name, "asked": dict(asked), "data": fingerprints}
    runs: list[TrainedAnswers] = []
    for seed in seeds:
        key = digest_of(question, seed)
        found = context.records.get(_TRAINED, key)
        if found is None:
            found = train(seed)
            context.records.add(_TRAINED, [(key, found)])
        runs.append(found)
    best = max(range(len(runs)), key=lambda place: runs[place].score)
    fits = [
        {"task": name, "seed": seed, **run.fit, "chosen": False}
        for seed, run in zip(seeds, runs, strict=True)
    ]
    fits[best] |= {"chosen": True, **spread([run.score for run in runs])}
    return runs[best], fits


def answered(
    trained: TrainedAnswers, fits: list[dict[str, Any]], settings: Mapping[str, Any]
) -> Iterator[Answered]:
    """Return a training's answers, task by task; the account of it goes with the first, what was cut with each."""
    cuts = trained.fit.get("cuts", {})
    for place, (task, splits) in enumerate(trained.answers.items()):
        predictions = {split: found.predictions for split, found in splits.items()}
        chances = {split: found.chances for split, found in splits.items() if found.chances}
        yield Answered(
            task, predictions, settings, chances, fits if place == 0 else (), notes=cuts.get(task, {})
        )
