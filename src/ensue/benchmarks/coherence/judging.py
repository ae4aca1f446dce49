"""Metric rows of items that have a document, a domain and scores: of all, and by domain where there are several."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of


def mean_rows(
    task: str, items: Sequence[Item], metrics: Sequence[str], settings: Mapping[str, Any]
) -> Iterator[MetricRow]:
    """Yield the mean of each metric with its interval over whole documents."""
    clusters = [item["cluster"] for item in items]
    for metric in metrics:
        values = [item["scores"][metric] for item in items]
        found = Figure(*clustered_interval(values, clusters, bounds=range_of(metric)))
        yield found.row(task, metric, settings)


def known_rows(
    task: str, items: Sequence[Item], names: Sequence[str], settings: Mapping[str, Any]
) -> Iterator[MetricRow]:
    """Yield the mean of numbers that are known and not estimated, such as chance, from the items' outputs."""
    clusters = len({item["cluster"] for item in items})
    for name in names:
        values = [item["outputs"][name] for item in items]
        yield Figure(math.fsum(values) / len(values), n=len(values), clusters=clusters).row(
            task, name, settings
        )


def by_domain(task: str, items: Sequence[Item]) -> Iterator[tuple[str, list[Item]]]:
    """Yield all items under the task, and those of each domain under the task and domain where there are several."""
    yield task, list(items)
    domains = sorted({item["outputs"]["domain"] for item in items})
    for domain in domains if len(domains) > 1 else ():
        yield f"{task}/{domain}", [item for item in items if item["outputs"]["domain"] == domain]
