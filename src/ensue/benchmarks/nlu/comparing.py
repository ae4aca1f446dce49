"""Comparing two runs of GLUE or SuperGLUE: paired by task, split and example, tested on each task's own metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.comparing import (
    Asked,
    Pairs,
    Resampling,
    Settings,
    Tested,
    Untested,
    correlation_test,
    mean_test,
    mean_tested,
)
from ensue.benchmarks.nlu.examples import TaskSpec
from ensue.benchmarks.nlu.judging import OF_GROUPS, of_counts
from ensue.metrics.answers import equal_pairs, whole_groups_right
from ensue.metrics.classification import confusion_cells
from ensue.stats.paired_statistic import Numbers, mean_over, paired_statistic_test
from ensue.stats.resampling import one_hot


class PairedAnswer(NamedTuple):
    """What an item holds: its gold label (none where the split has none), what was given, and its group."""

    label: Any
    predicted: Any
    group: str
    scores: Mapping[str, float]


class NluComparing:
    """The tests of a suite's tasks.

    A task answered in several ways, such as with several templates, has the mean over them as its figure; so it has
    here where the other run knows none of these ways.
    """

    def __init__(self, specs: Sequence[TaskSpec]) -> None:
        self._specs = {spec.name: spec for spec in specs}

    def asked(self, item: Mapping[str, Any]) -> Asked:
        way = {key: value for key, value in item["settings"].items() if key != "split"}
        return Asked(item["id"], item["task"], {"split": item["settings"].get("split")}, way)

    def kept(self, item: Mapping[str, Any]) -> PairedAnswer:
        outputs = item["outputs"]
        group = outputs.get("group") or item["id"]
        return PairedAnswer(outputs.get("label"), outputs["predicted"], group, item["scores"])

    def headline(self, ways: Sequence[Settings]) -> Sequence[Settings]:
        return [] if len(ways) > 1 and any("layer" in way for way in ways) else ways

    def tests(self, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
        spec = self._specs.get(pairs.task)
        if spec is None:
            yield Untested(pairs.task, pairs.settings, "it is no task of this benchmark")
        elif any(answer.label is None for side in (pairs.a, pairs.b) for item in side for answer in item):
            yield Untested(pairs.task, pairs.settings, "the data hold no labels of it")
        elif spec.form == "score":
            yield from _correlations(spec, pairs, how)
        else:
            for metric in spec.metrics:
                if spec.form == "entity":
                    yield from mean_test(pairs, metric, partial(_score, metric), how)
                elif metric == "accuracy":
                    yield from mean_test(pairs, metric, lambda one: float(one.label == one.predicted), how)
                elif metric in OF_GROUPS:
                    yield _of_groups(metric, pairs, how)
                else:
                    yield _of_counts(spec, metric, pairs, how)


def _score(metric: str, answer: PairedAnswer) -> float | None:
    return answer.scores.get(metric)


def _of_counts(spec: TaskSpec, metric: str, pairs: Pairs, how: Resampling) -> Tested:
    """Return a metric of the confusion table; several answers to one example have a table each, and the mean."""
    classes = len(spec.labels)
    measure = of_counts(metric, classes)

    def in_table(sums: Numbers) -> Numbers:
        return measure(sums.reshape(*sums.shape[:-1], classes, classes))

    statistic = mean_over(in_table, classes * classes)
    a, b = (_tables(spec, side) for side in (pairs.a, pairs.b))
    test = paired_statistic_test(a, b, pairs.clusters, statistic, rounds=how.rounds, seed=how.seed)
    values = [float(statistic(table.sum(axis=0))) for table in (a, b)]
    return Tested(pairs.task, metric, pairs.settings, values[0], values[1], test, bool(np.array_equal(a, b)))


def _tables(spec: TaskSpec, side: Sequence[Sequence[PairedAnswer]]) -> Numbers:
    """Return which cell of the confusion table each answer falls into [items, ways × classes × classes]."""
    codes = {label: code for code, label in enumerate(spec.labels)}
    cells = [
        confusion_cells([codes[one.label] for one in way], [codes[one.predicted] for one in way], len(codes))
        for way in zip(*side, strict=True)
    ]
    return np.hstack([one_hot(of_way, len(codes) ** 2) for of_way in cells])


def _of_groups(metric: str, pairs: Pairs, how: Resampling) -> Tested | Untested:
    """Return the share of groups that are right as a whole (MultiRC's questions) or answered alike (AX-g's pairs)."""
    names = [item[0].group for item in pairs.a]
    a, b = (_group_means(metric, names, side) for side in (pairs.a, pairs.b))
    if not a:
        reason = f"{metric} needs whole pairs, of which the runs share none"
        return Untested(pairs.task, pairs.settings, reason)
    first = dict(zip(reversed(names), reversed(pairs.clusters), strict=True))
    clusters = [first[name] for name in a]
    return mean_tested(pairs, metric, list(a.values()), [b[name] for name in a], clusters, how)


def _group_means(
    metric: str, names: Sequence[str], side: Sequence[Sequence[PairedAnswer]]
) -> dict[str, float]:
    """Return of each group whether it is right, as a mean over the ways of answering."""
    by_way = [
        whole_groups_right(names, [one.label == one.predicted for one in way])
        if metric == "em"
        else equal_pairs(names, [one.predicted for one in way])
        for way in zip(*side, strict=True)
    ]
    return {str(name): float(np.mean([found[name] for found in by_way])) for name in by_way[0]}


def _correlations(spec: TaskSpec, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
    gold = [float(item[0].label) for item in pairs.a]
    a, b = ([[float(one.predicted) for one in item] for item in side] for side in (pairs.a, pairs.b))
    for metric in spec.metrics:
        yield correlation_test(pairs, metric, a, b, gold, how)
