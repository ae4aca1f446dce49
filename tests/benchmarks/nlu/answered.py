"""Small tasks with random gold and given answers, for tests of judging."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ensue.benchmarks.glue import task as glue
from ensue.benchmarks.nlu.examples import Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.systems import Answered
from ensue.benchmarks.superglue import task as superglue

SPECS = {
    suite: {spec.name: spec for spec in specs}
    for suite, specs in {"glue": glue.SPECS, "superglue": superglue.SPECS}.items()
}


def spec(name: str, suite: str = "glue") -> TaskSpec:
    return SPECS[suite][name]


def task(asked: TaskSpec, examples: Sequence[Example], split: str = "dev") -> TaskData:
    return TaskData(asked, {split: list(examples)}, "fingerprint")


def answer(data: TaskData, given: Sequence[Prediction], split: str = "dev", **settings: Any) -> Answered:
    ids = [example.id for example in data.splits[split]]
    return Answered(data.spec.name, {split: dict(zip(ids, given, strict=True))}, settings)


def labelled(
    asked: TaskSpec, n: int, right: float = 0.7, seed: int = 0, split: str = "dev", **settings: Any
) -> tuple[TaskData, Answered, list[str], list[str]]:
    """A task of labels with its answers, of which that share is right on purpose; gold and given, too."""
    generator = np.random.default_rng(seed)
    gold = [asked.labels[code] for code in generator.integers(0, len(asked.labels), n)]
    given = [
        label if generator.random() < right else asked.labels[int(generator.integers(0, len(asked.labels)))]
        for label in gold
    ]
    examples = [Example(str(place), ("A.", "B."), label) for place, label in enumerate(gold)]
    data = task(asked, examples, split)
    return data, answer(data, given, split, **settings), gold, given


def tagged(
    asked: TaskSpec, rows: Sequence[tuple[str, str, Mapping[str, tuple[str, ...]]]]
) -> tuple[TaskData, Answered]:
    """A diagnostic set from (gold, given, tags)."""
    examples = [
        Example(str(place), ("A.", "B."), gold, tags=tags) for place, (gold, _, tags) in enumerate(rows)
    ]
    data = task(asked, examples, "test")
    return data, answer(data, [given for _, given, _ in rows], "test")
