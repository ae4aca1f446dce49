"""Small tasks of every form, written for the tests of prompting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.glue import task as glue
from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, Example, TaskData, TaskSpec, TextSpan
from ensue.benchmarks.superglue import task as superglue

SPECS: Mapping[str, TaskSpec] = {found.name: found for found in (*glue.SPECS, *superglue.SPECS)}


def spec(task: str) -> TaskSpec:
    return SPECS[task]


def example(form: str, number: int, gold: Any) -> Example:
    """An example of a form; `number` tells it from the others."""
    name = f"{number}"
    match form:
        case "single":
            return Example(name, (f"The {number} boats came home late. ",), gold)
        case "pair" | "score":
            return Example(name, (f"Ada sold {number} lamps.", "Somebody sold lamps."), gold)
        case "choice":
            asks = "cause" if number % 2 else "effect"
            return Example(
                name,
                (f"The {number} lamps went out.", asks),
                gold,
                choices=("The wind blew.", "A fuse burned."),
            )
        case "answers":
            return Example(
                name, (f"Ada sold {number} lamps to Bo.", "Who bought lamps?", "Bo"), gold, group="q1"
            )
        case "entity":
            return Example(
                name,
                (
                    f"Ada sold {number} lamps to Bo.\n@highlight\nBo paid.",
                    "The lamps now belong to @placeholder.",
                ),
                gold,
                choices=("Ada", "Bo"),
            )
        case "word":
            first = f"{number} bats hung from the roof."
            return Example(
                name,
                (first, "He swung the bat."),
                gold,
                spans=(TextSpan(0, len(name) + 1, len(name) + 5), TextSpan(1, 13, 16)),
            )
        case _:
            text = f"Ada asked {number} times, but Bo said that she was wrong."
            at = text.index("she")
            return Example(name, (text,), gold, spans=(TextSpan(0, 0, 3), TextSpan(0, at, at + 3)))


def golds(task: TaskSpec) -> list[Any]:
    if task.form == "score":
        return [0.0, 2.4, 5.0]
    return [("Bo",)] if task.form == "entity" else list(task.labels)


def task_data(name: str, train: int = 9, dev: int = 4, test: int = 2) -> TaskData:
    """A task with so many examples a split; the numbers in their texts tell the splits apart."""
    found = SPECS[name]
    gold = golds(found)
    splits = {
        TRAIN: [example(found.form, 1000 + n, gold[n % len(gold)]) for n in range(train)],
        DEV: [example(found.form, 2000 + n, gold[n % len(gold)]) for n in range(dev)],
        TEST: [example(found.form, 3000 + n, None) for n in range(test)],
    }
    return TaskData(found, {split: rows for split, rows in splits.items() if rows}, "made")


def settings(system: Any, **given: Any) -> dict[str, Any]:
    return {**{key: one.default for key, one in system.settings.items()}, **given}


def answers(system: Any, model: Any, tasks: list[TaskData], seed: int = 0, **given: Any) -> list[Any]:
    return list(system.answer(model, tasks, settings(system, **given), seed, RunContext()))
