"""Metric rows of items that have a document, a domain and scores: of all, and by domain where there are several."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of


class Column(NamedTuple):
    """What metrics need of items, which may be more than memory holds: a number of an item takes eight bytes."""

    clusters: list[str]
    scores: Mapping[str, Sequence[float]]
    known: Mapping[str, Sequence[float]]

    def of(self, places: Sequence[int]) -> Column:
        """Return some of the items."""
        scores, known = (
            {name: [values[place] for place in places] for name, values in numbers.items()}
            for numbers in (self.scores, self.known)
        )
        return Column([self.clusters[place] for place in places], scores, known)


def column_of(
    items: Iterable[Item], metrics: Sequence[str], known: Sequence[str] = ()
) -> tuple[Column, list[str]]:
    """Return the scores of items and what is known of them, by name, and the domain of each."""
    clusters: list[str] = []
    domains: list[str] = []
    scores, outputs = ({name: array("d") for name in names} for names in (metrics, known))
    # Each name is held once, however many items have it.
    names: dict[str, str] = {}
    for item in items:
        clusters.append(names.setdefault(item["cluster"], item["cluster"]))
        domain = item["outputs"].get("domain", "")
        domains.append(names.setdefault(domain, domain))
        for name, values in scores.items():
            values.append(item["scores"][name])
        for name, values in outputs.items():
            values.append(item["outputs"][name])
    return Column(clusters, dict(scores), dict(outputs)), domains


def mean_rows(task: str, column: Column, settings: Mapping[str, Any]) -> Iterator[MetricRow]:
    """Yield the mean of each score with its interval over whole documents."""
    for metric, values in column.scores.items():
        found = Figure(*clustered_interval(values, column.clusters, bounds=range_of(metric)))
        yield found.row(task, metric, settings)


def rows_by_domain(
    task: str, items: Iterable[Item], metrics: Sequence[str], known: Sequence[str]
) -> Iterator[MetricRow]:
    """Yield the means of scores and of numbers that are known and not estimated, such as chance: of all items under
    the task, and of each domain under the task and domain where there are several."""
    column, domains = column_of(items, metrics, known)
    yield from _rows(task, column)
    several = sorted(set(domains))
    for domain in several if len(several) > 1 else ():
        places = [place for place, own in enumerate(domains) if own == domain]
        yield from _rows(f"{task}/{domain}", column.of(places))


def _rows(task: str, column: Column) -> Iterator[MetricRow]:
    yield from mean_rows(task, column, {})
    clusters = len(set(column.clusters))
    for name, values in column.known.items():
        found = Figure(math.fsum(values) / len(values), n=len(values), clusters=clusters)
        yield found.row(task, name, {})
