"""The suites whose runs the probing report tells: their groups, tasks and table columns, and the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ensue.benchmarks.discoeval.published import best_layers, human, published, published_senteval
from ensue.benchmarks.discoeval.suite import GROUPS as DISCOEVAL_GROUPS
from ensue.benchmarks.discoeval.suite import SPECS
from ensue.benchmarks.senteval.catalog import GROUPS as SENTEVAL_GROUPS
from ensue.benchmarks.senteval.catalog import TASKS

AVERAGE = "average"


class Column(NamedTuple):
    """A column of table 2: the name that rows of results have, and the tasks it is the mean of."""

    name: str
    tasks: tuple[str, ...]


class System(NamedTuple):
    """A published system: its figures by column, and whether the paper trained it itself."""

    name: str
    figures: Mapping[str, float]
    own: bool = False
    human: bool = False


class Suite(NamedTuple):
    """A suite: `metrics` holds what a task is judged by where that is not accuracy."""

    name: str
    title: str
    groups: Mapping[str, tuple[str, ...]]
    columns: tuple[Column, ...]
    metrics: Mapping[str, str]

    @property
    def tasks(self) -> list[str]:
        return [task for members in self.groups.values() for task in members]

    def metric(self, task: str) -> str:
        return self.metrics.get(task, "accuracy")


def _discoeval() -> Suite:
    groups = {g: tuple(spec.name for spec in SPECS if spec.group == g) for g in DISCOEVAL_GROUPS}
    columns: dict[str, list[str]] = {}
    for spec in SPECS:
        columns.setdefault(spec.column, []).append(spec.name)
    return Suite(
        "discoeval",
        "DiscoEval",
        groups,
        tuple(Column(name, tuple(tasks)) for name, tasks in columns.items()),
        {},
    )


def _senteval() -> Suite:
    groups: dict[str, tuple[str, ...]] = {
        group: tuple(task.name for task in tasks) for group, tasks in SENTEVAL_GROUPS.items()
    }
    return Suite(
        "senteval",
        "SentEval",
        groups,
        tuple(Column(name, tasks) for name, tasks in groups.items()),
        {task.name: task.metric for task in TASKS.values()},
    )


SUITES = {suite.name: suite for suite in (_discoeval(), _senteval())}


def suite_of(benchmark: object) -> Suite | None:
    """The suite that a run is of; a run may be of one of its groups or tasks, such as `discoeval/SP`."""
    return SUITES.get(str(benchmark).partition("/")[0])


def systems(suite: Suite) -> list[System]:
    """The lines of table 2, and the human one of table 5 where the suite has it."""
    if suite.name == "senteval":
        return [System(row.model, row.groups, own=row.ours) for row in published_senteval()]
    found: dict[str, dict[str, float]] = {}
    own = set()
    for row in published():
        if row.table == 2:
            found.setdefault(row.model, {})[row.task] = row.accuracy
            if row.ours:
                own.add(row.model)
    columns = {column.name for column in suite.columns}
    people = {name: value for name, value in human().items() if name in columns}
    return [
        *(System(name, figures, own=name in own) for name, figures in found.items()),
        System("Human (table 5)", people, human=True),
    ]


def by_domain(suite: Suite) -> dict[str, dict[str, float]]:
    """Table 5, model by model: accuracies by task and group, which only DiscoEval has."""
    found: dict[str, dict[str, float]] = {}
    for row in published():
        if row.table == 5 and suite.name == "discoeval":
            found.setdefault(row.model, {})[row.task] = row.accuracy
    return found


def published_best_layers(suite: Suite) -> dict[str, float]:
    """The suite's line of table 3."""
    return {row.model: row.layer for row in best_layers() if row.suite == suite.title}


def column_words(name: str) -> str:
    """A column as the paper heads it.

    >>> column_words("PDTB/explicit"), column_words("SP"), column_words("RST")
    ('PDTB-E', 'SP', 'RST-DT')
    """
    return {"PDTB/explicit": "PDTB-E", "PDTB/implicit": "PDTB-I", "RST": "RST-DT"}.get(name, name)
