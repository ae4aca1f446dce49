"""Examples of every form as rows of one or two texts, and a classifier's outputs on those rows as answers again."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.nlu.examples import (
    DEV,
    HELD_OUT,
    TRAIN,
    Example,
    Form,
    Prediction,
    TaskData,
    TaskSpec,
    TextSpan,
)
from ensue.errors import EnsueError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Forms with one row a choice, of which one output a row says how good the choice is.
PER_CHOICE: tuple[Form, ...] = ("choice", "entity")
_GAP = "@placeholder"
_ASKED = {"cause": "What caused this?", "effect": "What followed from this?"}
_NOT_ENTAILED = "not_entailment"
# The share of the training set that is chosen on where a task has no labelled dev set.
_CHOSEN_ON = 0.05
# What is judged where a task has a training set only: this share of it, and about so many examples at most.
_JUDGED, _MOST_JUDGED = 0.1, 2_000


class TextRow(NamedTuple):
    """What a classifier sees at once: one text or two, and two marked stretches of them or none."""

    texts: tuple[str, ...]
    marks: tuple[TextSpan, ...] = ()


@dataclass(frozen=True)
class Framed:
    """The rows of some examples: the example each row belongs to, and what it should give where that is known.

    A target is the number of a class, a score, or (one row a choice) 1 for a right choice and 0 for a wrong one.
    """

    examples: list[Example]
    rows: list[TextRow]
    owners: Ints
    targets: Floats | None


@dataclass(frozen=True)
class PredictedAnswers:
    """Predictions by example, and what each label, choice or entity was given a chance of (none for scores)."""

    predictions: dict[str, Prediction]
    chances: dict[str, list[float]]


def rows_of(form: Form, example: Example) -> list[TextRow]:
    """Return the rows of an example; the question of a passage comes first, so that cutting a long text spares it."""
    texts = example.texts
    if form == "choice":
        premise, asked = texts
        return [TextRow((f"{premise} {_ASKED.get(asked, asked)}", choice)) for choice in example.choices]
    if form == "answers":
        passage, question, answer = texts
        return [TextRow((f"{question} {passage}", answer))]
    if form == "entity":
        passage, query = texts
        return [TextRow((passage, query.replace(_GAP, entity))) for entity in example.choices]
    return [TextRow(texts, example.spans if form in ("word", "coreference") else ())]


def ask(form: Form, examples: list[Example]) -> Framed:
    """Return the rows of examples that are only to be answered."""
    rows: list[TextRow] = []
    owners: list[int] = []
    for number, example in enumerate(examples):
        own = rows_of(form, example)
        if not own:
            raise EnsueError(f"{example.where or example.id} has no choices; give it one at least.")
        rows += own
        owners += [number] * len(own)
    return Framed(examples, rows, np.asarray(owners, dtype=np.int64), None)


def frame(spec: TaskSpec, examples: list[Example]) -> Framed:
    """Return the rows of labelled examples with their targets."""
    targets = [target for example in examples for target in _targets(spec, example)]
    return replace(ask(spec.form, examples), targets=np.asarray(targets, dtype=np.float64))


def _targets(spec: TaskSpec, example: Example) -> list[float]:
    gold = example.gold
    if spec.form == "score":
        return [float(gold)]  # type: ignore[arg-type]  # a reader has checked it
    if spec.form == "entity":
        return [float(choice in gold) for choice in example.choices]  # type: ignore[operator]
    if gold not in spec.labels:
        raise EnsueError(
            f"{example.where or example.id} has the label {gold!r}; {spec.name} has {', '.join(spec.labels)}."
        )
    place = spec.labels.index(gold)
    if spec.form == "choice":
        return [float(place == number) for number in range(len(example.choices))]
    return [float(place)]


def outputs_of(spec: TaskSpec) -> int:
    """Return how many numbers a classifier of the task gives for a row."""
    return 1 if spec.form == "score" or spec.form in PER_CHOICE else len(spec.labels)


def answers(spec: TaskSpec, framed: Framed, outputs: Floats) -> PredictedAnswers:
    """Return what a classifier's outputs [rows, outputs_of(spec)] say about the examples."""
    ids = [example.id for example in framed.examples]
    if spec.form == "score":
        return PredictedAnswers(dict(zip(ids, outputs[:, 0].tolist(), strict=True)), {})
    if spec.form not in PER_CHOICE:
        chances = softmax(outputs)
        best = outputs.argmax(1)
        labels: dict[str, Prediction] = {id: spec.labels[k] for id, k in zip(ids, best, strict=True)}
        return PredictedAnswers(labels, dict(zip(ids, chances.tolist(), strict=True)))
    found: dict[str, Prediction] = {}
    sure: dict[str, list[float]] = {}
    ends = np.flatnonzero(np.diff(framed.owners, append=-1)) + 1
    for example, values in zip(framed.examples, np.split(outputs[:, 0], ends[:-1]), strict=True):
        options = spec.labels if spec.form == "choice" else example.choices
        found[example.id] = options[int(values.argmax())]
        # Entities are judged each for itself; choices against each other.
        odds = softmax(values[None])[0] if spec.form == "choice" else 1.0 / (1.0 + np.exp(-values))
        sure[example.id] = odds.tolist()
    return PredictedAnswers(found, sure)


def softmax(outputs: Floats) -> Floats:
    """Return chances from logits, row by row."""
    powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    chances: Floats = powers / powers.sum(axis=1, keepdims=True)
    return chances


def answered_as(given: PredictedAnswers, by: TaskSpec, asked: TaskSpec) -> PredictedAnswers:
    """Return one task's answers in the labels of another: what is no entailment in three classes is so in two."""
    if by.labels == asked.labels:
        return given
    renamed = {label: label if label in asked.labels else _NOT_ENTAILED for label in by.labels}
    if not set(renamed.values()) <= set(asked.labels):
        raise EnsueError(
            f"{by.name} cannot answer {asked.name}: it tells {', '.join(by.labels)} apart, "
            f"not {', '.join(asked.labels)}."
        )
    found: dict[str, list[float]] = {}
    for id, chances in given.chances.items():
        moved = dict.fromkeys(asked.labels, 0.0)
        for label, chance in zip(by.labels, chances, strict=True):
            moved[renamed[label]] += chance
        found[id] = list(moved.values())
    return PredictedAnswers({id: renamed[str(label)] for id, label in given.predictions.items()}, found)


class Parts(NamedTuple):
    """What is trained on, what is chosen on, and whether the latter was cut out of the training set."""

    train: list[Example]
    chosen_on: list[Example]
    held_out: bool


def parts_of(data: TaskData, seed: int) -> Parts | None:
    """Training set and dev set (without labelled dev, a twentieth of the training set); None if there is none, or
    too little to divide."""
    if not data.labelled(TRAIN) or (len(data.splits[TRAIN]) < 2 and not data.labelled(DEV)):
        return None
    train = data.splits[TRAIN]
    if data.labelled(DEV):
        return Parts(train, data.splits[DEV], False)
    order = np.random.default_rng(seed).permutation(len(train))
    cut = max(1, round(_CHOSEN_ON * len(train)))
    return Parts([train[i] for i in sorted(order[cut:])], [train[i] for i in sorted(order[:cut])], True)


def with_held_out(data: TaskData) -> TaskData:
    """Return the task with a tenth of its training set as a split of its own, where there is no other to answer.

    Whole clusters, drawn by the task's name alone, so that runs of every seed and mode are judged by the same.
    """
    train = data.splits.get(TRAIN, [])
    clusters = list(dict.fromkeys(example.resampled_with for example in train))
    if data.judged_splits or not data.labelled(TRAIN) or len(clusters) < 2:
        return data
    random.Random(data.spec.name).shuffle(clusters)
    wanted = min(_MOST_JUDGED, max(1, round(_JUDGED * len(train))))
    sizes = Counter(example.resampled_with for example in train)
    taken: set[str] = set()
    for cluster in clusters[:-1]:
        if sum(sizes[one] for one in taken) >= wanted:
            break
        taken.add(cluster)
    parts = {
        TRAIN: [example for example in train if example.resampled_with not in taken],
        HELD_OUT: [example for example in train if example.resampled_with in taken],
    }
    said = "examples of the training set held out to judge by, for want of dev and test"
    return replace(
        data,
        splits=parts,
        fingerprint=hashlib.sha256(f"{data.fingerprint} {HELD_OUT}".encode()).hexdigest(),
        notes=data.notes + Counter({said: len(parts[HELD_OUT])}),
    )


def answered_with(data: TaskData, tasks: Sequence[TaskData]) -> list[TaskData]:
    """Return the task itself and those without a training set that its classifier answers."""
    return [data, *(other for other in tasks if other.spec.answered_by == data.spec.name)]


def spread(scores: Sequence[float]) -> dict[str, Any]:
    """Return how several runs went: their mean and standard deviation (of a sample; 0 for one run)."""
    deviation = float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
    return {"runs": len(scores), "dev_mean": float(np.mean(scores)), "dev_sd": deviation}
