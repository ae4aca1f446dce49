"""How far a task's results lie apart over its templates: the best, the mean, the standard deviation."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.report.results import MetricRow


class Spread(NamedTuple):
    """One metric of a task over its templates; `sd` is the sample's, None for a single template.

    The best is the best of those tried on this split: as a figure it flatters, which is why the others are beside it.
    """

    task: str
    metric: str
    settings: dict[str, Any]
    best: float
    best_template: str
    mean: float
    sd: float | None
    templates: int


def spread(rows: Sequence[MetricRow]) -> list[Spread]:
    """The spread of all rows that differ in nothing but their template, in order of first appearance."""
    groups: dict[tuple[str, str, str], list[MetricRow]] = defaultdict(list)
    for row in rows:
        if "template" in row["settings"]:
            rest = json.dumps(_rest(row), sort_keys=True, default=str)
            groups[row["task"], row["metric"], rest].append(row)
    return [_spread(group) for group in groups.values()]


def _spread(rows: Sequence[MetricRow]) -> Spread:
    values = [row["value"] for row in rows]
    best = max(rows, key=lambda row: row["value"])
    return Spread(
        task=best["task"],
        metric=best["metric"],
        settings=_rest(best),
        best=best["value"],
        best_template=str(best["settings"]["template"]),
        mean=statistics.fmean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        templates=len(values),
    )


def _rest(row: MetricRow) -> dict[str, Any]:
    return {key: value for key, value in row["settings"].items() if key != "template"}
