"""Comparing two runs of QAGS: does a measure of the one agree better with people than that of the other?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.comparing import MeanScores, Pairs, Resampling, Settings, Tested, Untested, mean_tested
from ensue.benchmarks.qags.judging import verdict_of, worth
from ensue.benchmarks.summaries.metaeval import Correlated, correlations, difference
from ensue.stats.paired import PairedTest

CONSISTENT, INCONSISTENT = "-consistent", "-inconsistent"


class JudgedItem(NamedTuple):
    """What an item holds: its name, every measure's value, what people said, and whose summary it is."""

    id: str
    values: Mapping[str, float]
    human: Mapping[str, float]
    system: str | None


class QagsComparing(MeanScores):
    """Correlations with people by the paired bootstrap, as within a run; rankings by the paired permutation test."""

    def kept(self, item: Mapping[str, Any]) -> JudgedItem:
        outputs = item["outputs"]
        return JudgedItem(item["id"], item["scores"], outputs["human"], outputs.get("system"))

    def headline(self, ways: Sequence[Settings]) -> Sequence[Settings]:
        return ways

    def tests(self, pairs: Pairs, how: Resampling) -> Iterator[Tested | Untested]:
        a, b = ([item[0] for item in side] for side in (pairs.a, pairs.b))
        ranked = all(one.id.endswith((CONSISTENT, INCONSISTENT)) for one in a)
        for measure in dict.fromkeys([*a[0].values, *b[0].values]):
            if measure in a[0].values and measure in b[0].values:
                yield from (_ranking if ranked else _correlations)(pairs, measure, a, b, how)
            else:
                where = "first" if measure in a[0].values else "second"
                yield Untested(pairs.task, {"measure": measure}, f"it was computed in the {where} run only")


def _ranking(
    pairs: Pairs, measure: str, a: Sequence[JudgedItem], b: Sequence[JudgedItem], how: Resampling
) -> Iterator[Tested | Untested]:
    """Test the share of triplets whose consistent sentence has the higher value, ties as wrong and as half right."""
    places: dict[str, dict[bool, int]] = {}
    for place, one in enumerate(a):
        name = one.id.removesuffix(INCONSISTENT).removesuffix(CONSISTENT)
        places.setdefault(name, {})[one.id.endswith(INCONSISTENT)] = place
    whole = [found for found in places.values() if len(found) == 2]
    if not whole:
        yield Untested(pairs.task, {"measure": measure}, "the runs share no whole triplet")
        return
    verdicts = [
        [verdict_of(side[one[False]].values[measure], side[one[True]].values[measure]) for one in whole]
        for side in (a, b)
    ]
    clusters = [pairs.clusters[one[False]] for one in whole]
    named = pairs._replace(settings={"measure": measure})
    for metric, tie in (("accuracy", 0.0), ("accuracy_half_ties", 0.5)):
        first, second = ([worth(verdict, tie) for verdict in side] for side in verdicts)
        yield mean_tested(named, metric, first, second, clusters, how)


def _correlations(
    pairs: Pairs, measure: str, a: Sequence[JudgedItem], b: Sequence[JudgedItem], how: Resampling
) -> Iterator[Tested | Untested]:
    settings = {**pairs.settings, "measure": measure}
    values = [[one.values[measure] for one in side] for side in (a, b)]
    found = [_levels(pairs, a, given, how) for given in values]
    if not found[0]:
        yield Untested(pairs.task, settings, "it has fewer than two summaries or systems that both runs have")
    for (at, first), (_, second) in zip(*found, strict=True):
        place = {**settings, **at}
        both = difference(first, second)
        if not both:
            yield Untested(
                pairs.task, place, "its values are all the same, so that they correlate with nothing"
            )
        for kind, one in both.items():
            if one.p_value is None:
                yield Untested(
                    pairs.task, place, f"too few rounds of the bootstrap have a {kind} correlation"
                )
                continue
            figures = (first.figures[kind], second.figures[kind])
            test = PairedTest(one.difference, one.low, one.high, one.p_value, figures[0].n, figures[0].units)
            alike = values[0] == values[1]
            yield Tested(pairs.task, kind, place, figures[0].value, figures[1].value, test, alike)


def _levels(
    pairs: Pairs, items: Sequence[JudgedItem], values: Sequence[float], how: Resampling
) -> list[tuple[dict[str, str], Correlated]]:
    """Correlate with each human score at every level the set has."""
    names = list(dict.fromkeys(one.system for one in items if one.system is not None))
    human = {score: np.asarray([one.human[score] for one in items]) for score in items[0].human}
    if not names:
        return correlations(values, human, pairs.clusters, seed=how.seed)
    articles: dict[int, dict[str | None, int]] = {}
    for place, one in enumerate(items):
        articles.setdefault(pairs.clusters[place], {})[one.system] = place
    # A run that was cut short may lack a system's summary of an article, which then has no row of the table.
    rows = [[row[name] for name in names] for row in articles.values() if len(row) == len(names)]
    if not rows:
        return []
    table = np.asarray(values)[np.asarray(rows)]
    people = {score: given[np.asarray(rows)] for score, given in human.items()}
    return correlations(table, people, seed=how.seed)


COMPARING = QagsComparing()
