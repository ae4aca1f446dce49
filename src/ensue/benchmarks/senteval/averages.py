"""Averages over the sets of an STS year and over the tasks of a group, each row saying what it covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.base import covers
from ensue.benchmarks.drawn import Drawn, mean_of_samples
from ensue.benchmarks.senteval.catalog import GROUPS, Task
from ensue.report.results import MetricRow

WEIGHTED = {"average": "weighted"}


class TaskFigures(NamedTuple):
    """A task's figures on one split by metric; `weighted` are those of an STS year with sets weighted by size."""

    task: Task
    split: str
    settings: Mapping[str, Any]
    figures: Mapping[str, Drawn]
    weighted: Mapping[str, Drawn]


def over_sets(task: Task, sets: Sequence[Mapping[str, Drawn]], at: Mapping[str, Any]) -> TaskFigures:
    """An STS year: the plain mean over its sets, which is the number reported, and the mean weighted by size."""
    metrics = list(sets[0])
    plain = {metric: mean_of_samples([found[metric] for found in sets]) for metric in metrics}
    sizes = [float(found[metrics[0]].n) for found in sets]
    weighted = {metric: mean_of_samples([found[metric] for found in sets], sizes) for metric in metrics}
    return TaskFigures(task, "test", {"split": "test", **at}, plain, weighted)


def task_rows(found: TaskFigures) -> Iterator[MetricRow]:
    """The rows of a whole task."""
    place = found.settings
    for metric, figure in found.figures.items():
        yield figure.row(found.task.name, metric, place)
    for metric, figure in found.weighted.items():
        yield figure.row(found.task.name, metric, {**place, **WEIGHTED})


def group_rows(
    found: Sequence[TaskFigures], asked: Sequence[Task], limit: int | None = None
) -> Iterator[MetricRow]:
    """A row for every group of which several tasks were asked for, on each split that any of them has.

    Groups of one metric are averaged under its name; SSS mixes Pearson correlations with an accuracy, as the
    paper does, and is called `average`.
    """
    for group, members in GROUPS.items():
        wanted = [task for task in members if task in asked]
        if len(wanted) < 2:
            continue
        for split in ("dev", "test"):
            there = [one for one in found if one.task in wanted and one.split == split]
            if there:
                yield from _group(group, wanted, there, limit)


def _group(
    group: str, wanted: Sequence[Task], there: Sequence[TaskFigures], limit: int | None
) -> Iterator[MetricRow]:
    names = [one.task.name for one in there]
    covered = covers(len(names), len(wanted), limit)
    place = {**there[0].settings, "covers": covered, "tasks": ",".join(names)}
    if lacking := [task.name for task in wanted if task.name not in names]:
        place["missing"] = ",".join(lacking)
    metrics = {one.task.metric for one in there}
    main = metrics.pop() if len(metrics) == 1 else "average"
    yield mean_of_samples([one.figures[one.task.metric] for one in there]).row(group, main, place)
    if group == "USS":
        yield mean_of_samples([one.figures["spearman"] for one in there]).row(group, "spearman", place)
        for metric in ("pearson", "spearman"):
            mean = mean_of_samples([one.weighted[metric] for one in there])
            yield mean.row(group, metric, {**place, **WEIGHTED})
