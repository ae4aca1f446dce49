"""How two runs of a benchmark are compared: which items answer one question, and what is tested of their answers.

A benchmark whose metrics are not means of `scores` exports an object of its own as its `comparing`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any, NamedTuple, Protocol

from ensue.stats.clustered import Interval, clustered_interval
from ensue.stats.paired import PairedTest, paired_test
from ensue.stats.paired_statistic import mean_correlation, paired_correlation_test
from ensue.stats.ranges import range_holding

Settings = Mapping[str, Any]


def in_common(settings: Sequence[Settings]) -> dict[str, Any]:
    """Return what all settings agree in."""
    first, *others = settings
    return {
        key: value for key, value in first.items() if all(key in one and one[key] == value for one in others)
    }


class Asked(NamedTuple):
    """What an item answers, and in which way it was answered.

    Items of two runs belong together where `id`, `task` and `settings` are the same. `way` is the rest of an item's
    settings: what the run chose, such as a template or a layer.
    """

    id: str
    task: str
    settings: Settings
    way: Settings


class Pairs(NamedTuple):
    """The items of one task and setting that two runs share, in one order.

    `a` and `b` hold for each item what was kept of its answers: one, or several of equal weight where the figure of a
    run is the mean over several ways of answering; both sides then have equally many.
    """

    task: str
    settings: Settings
    a: Sequence[Sequence[Any]]
    b: Sequence[Sequence[Any]]
    clusters: Sequence[int]


class Tested(NamedTuple):
    """A metric of both runs and the test of their difference; `alike` where no answer differs.

    `same` is the share of items that both runs score the same, where items are right, wrong or undecided.
    """

    task: str
    metric: str
    settings: Settings
    value_a: float
    value_b: float
    test: PairedTest
    alike: bool
    same: Interval | None = None


class Untested(NamedTuple):
    """Something that could not be tested, and why."""

    task: str
    settings: Settings
    reason: str


class Resampling(NamedTuple):
    """How often is drawn, and from which seed on."""

    rounds: int = 10_000
    seed: int = 0


class Comparing(Protocol):
    """What a benchmark says about comparing two of its runs."""

    def asked(self, item: Mapping[str, Any]) -> Asked:
        """Return what an item answers, and in which way."""

    def kept(self, item: Mapping[str, Any]) -> Any:
        """Return all that the tests need of an item."""

    def headline(self, ways: Sequence[Settings]) -> Sequence[Settings]:
        """Return the ways that a run's own figure averages, for a run that shares no way with the other; or none."""

    def tests(self, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
        """Test every metric of one task and setting."""


class MeanScores:
    """Every metric is the mean of `scores[metric]`, and items belong together that agree in all settings."""

    def asked(self, item: Mapping[str, Any]) -> Asked:
        return Asked(item["id"], item["task"], item["settings"], {})

    def kept(self, item: Mapping[str, Any]) -> Any:
        return finite_scores(item)

    def headline(self, ways: Sequence[Settings]) -> Sequence[Settings]:
        return ways if len(ways) == 1 else []

    def tests(self, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
        sides = [[[dict(answer) for answer in answers] for answers in side] for side in (pairs.a, pairs.b)]
        names = [
            list(dict.fromkeys(name for item in side for answer in item for name in answer)) for side in sides
        ]
        for name in names[0]:
            if name in names[1]:
                yield from mean_test(pairs, name, methodcaller("get", name), how, sides)
        for own, other, where in ((names[0], names[1], "first"), (names[1], names[0], "second")):
            for name in own:
                if name not in other:
                    yield Untested(pairs.task, pairs.settings, f"{name} was scored in the {where} run only")


def finite_scores(item: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Return the scores of an item that are finite numbers; a missing one is null or absent."""
    return tuple(
        (name, float(score))
        for name, score in item["scores"].items()
        if isinstance(score, int | float) and math.isfinite(score)
    )


def mean_test(
    pairs: Pairs,
    metric: str,
    value: Callable[[Any], float | None],
    how: Resampling,
    sides: Sequence[Sequence[Sequence[Any]]] | None = None,
) -> Iterator[Tested]:
    """Test a mean over items (and ways); items without a value in one of the runs are left out."""
    answers_a, answers_b = sides or (pairs.a, pairs.b)
    a, b, clusters = [], [], []
    for one, other, cluster in zip(answers_a, answers_b, pairs.clusters, strict=True):
        found = [number for answer in one if (number := value(answer)) is not None]
        against = [number for answer in other if (number := value(answer)) is not None]
        if len(found) == len(one) and len(against) == len(other):
            a.append(sum(found) / len(found))
            b.append(sum(against) / len(against))
            clusters.append(cluster)
    if a:
        yield mean_tested(pairs, metric, a, b, clusters, how)


def mean_tested(
    pairs: Pairs,
    metric: str,
    a: Sequence[float],
    b: Sequence[float],
    clusters: Sequence[int],
    how: Resampling,
) -> Tested:
    """Test a mean over values, and their clusters, that were made of the pairs."""
    test = paired_test(a, b, clusters, bounds=range_holding(metric, a, b), rounds=how.rounds, seed=how.seed)
    means = (math.fsum(a) / len(a), math.fsum(b) / len(b))
    same = None
    if {*a, *b} <= {0.0, 0.5, 1.0}:
        same = clustered_interval(
            [float(one == other) for one, other in zip(a, b, strict=True)], clusters, bounds=(0.0, 1.0)
        )
    return Tested(pairs.task, metric, pairs.settings, *means, test, list(a) == list(b), same)


def correlation_test(
    pairs: Pairs,
    kind: str,
    a: Sequence[Any],
    b: Sequence[Any],
    gold: Sequence[float],
    how: Resampling,
    sets: Sequence[Hashable] | None = None,
) -> Tested | Untested:
    """Test a correlation with gold scores; `a` and `b` hold a score, or one for every way, of each item."""
    if len(gold) < 2:
        return Untested(pairs.task, pairs.settings, "a correlation needs two examples that both runs have")
    test = paired_correlation_test(kind, a, b, gold, pairs.clusters, sets, rounds=how.rounds, seed=how.seed)
    values = [mean_correlation(kind, given, gold, sets) for given in (a, b)]
    return Tested(pairs.task, kind, pairs.settings, values[0], values[1], test, list(a) == list(b))
