"""From metric values and human judgments to rows: correlations, rankings, agreement, and who beats whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.qags.baselines import TO_BEAT
from ensue.benchmarks.qags.judgments import agreement
from ensue.benchmarks.qags.measures import QAGS, Values
from ensue.benchmarks.qags.metaeval import (
    CONSTANT_ARTICLES,
    Correlated,
    difference,
    over_summaries,
    summary_level,
    system_level,
)
from ensue.benchmarks.qags.ranking import rank
from ensue.benchmarks.qags.sets import JudgedSet
from ensue.metrics.correlation import rowwise
from ensue.report.results import MetricRow
from ensue.stats.clustered import Interval
from ensue.stats.paired import holm, paired_test
from ensue.stats.paired_statistic import williams_test
from ensue.stats.ranges import SHARE

TOO_FEW = "sets of fewer than two summaries, which have no correlation"
Settings = dict[str, Any]


class Judged(NamedTuple):
    """Rows for the table, differences between metrics, and what could not be told."""

    rows: list[MetricRow]
    comparisons: list[dict[str, Any]]
    notes: Counter[str]


def judge(judged: JudgedSet, values: Values) -> Judged:
    """All that is said of one set by all metrics."""
    if judged.triplets:
        return _ranked(judged, values)
    rows: list[MetricRow] = []
    notes: Counter[str] = Counter(judged.notes)
    comparisons: list[dict[str, Any]] = []
    if judged.judged and any(len(s.responses) > 1 for one in judged.judged for s in one.sentences):
        rows += _agreement_rows(judged, notes)
    found = {name: correlations(judged, given) for name, given in values.items()}
    for name, levels in found.items():
        rows += correlation_rows(judged, levels, {"measure": name}, notes)
    for place, (settings, _) in enumerate(next(iter(found.values()), [])):
        at = {name: levels[place][1] for name, levels in found.items()}
        comparisons += _compared(judged, values, at, settings)
    if not found or not next(iter(found.values())):
        notes[TOO_FEW] += 1
    return Judged(rows, comparisons, notes)


def correlations(judged: JudgedSet, values: Sequence[float]) -> list[tuple[Settings, Correlated]]:
    """The correlations of one metric with people, at every level the set has."""
    if not judged.systems:
        if len(values) < 2:
            return []
        human = next(iter(judged.human.values()))
        return [({}, over_summaries(values, human, judged.clusters))]
    if len(judged.systems) < 2:
        return []
    found: list[tuple[Settings, Correlated]] = []
    shape = (-1, len(judged.systems))
    table = np.asarray(values, dtype=np.float64).reshape(shape)
    for score, given in judged.human.items():
        people = np.asarray(given, dtype=np.float64).reshape(shape)
        found.append(({"level": "system", "human": score}, system_level(table, people)))
        found.append(({"level": "summary", "human": score}, summary_level(table, people)))
    return found


def correlation_rows(
    judged: JudgedSet,
    levels: Sequence[tuple[Settings, Correlated]],
    settings: Mapping[str, Any],
    notes: Counter[str],
) -> list[MetricRow]:
    """A row for each kind of correlation at each level; what has none is counted."""
    rows = []
    for at, correlated in levels:
        for why, count in correlated.left_out.items():
            place = ", ".join([judged.name, *map(str, at.values())])
            if why == CONSTANT_ARTICLES:
                # Nearly the same for all metrics, so that the most says enough.
                words = f"{place}: {why} by some metric, at most"
                notes[words] = max(notes[words], count)
            else:
                notes[f"{place}, {' '.join(map(str, settings.values()))}: {why}"] += count
        rows += [
            figure.row(judged.name, kind, {**settings, **at}) for kind, figure in correlated.figures.items()
        ]
    return rows


def _agreement_rows(judged: JudgedSet, notes: Counter[str]) -> list[MetricRow]:
    figure = agreement(judged.judged)
    if not np.isfinite(figure.value):
        notes[f"{judged.name}: workers who all said the same, so that there is no alpha"] += figure.n
        return []
    return [figure.row(judged.name, "alpha", {})]


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Every metric against the baseline to beat, and QAGS against every other."""
    beaten = [(name, TO_BEAT) for name in names if name != TO_BEAT and TO_BEAT in names]
    ours = [(QAGS, name) for name in names if QAGS in names and name not in (QAGS, TO_BEAT)]
    return beaten + ours


def _compared(
    judged: JudgedSet, values: Values, at: Mapping[str, Correlated], settings: Settings
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for a, b in _pairs(list(at)):
        williams = None
        if (
            not judged.systems
            and "pearson" in at[a].figures
            and "pearson" in at[b].figures
            and len(values[a]) > 3
        ):
            between = float(rowwise("pearson", np.array([values[a]]), np.array([values[b]]))[0])
            both = (at[a].figures["pearson"].value, at[b].figures["pearson"].value)
            williams = williams_test(*both, between, len(values[a])).p_value
        for kind, one in difference(at[a], at[b]).items():
            rows.append(
                {
                    "set": judged.name,
                    **settings,
                    "a": a,
                    "b": b,
                    "kind": kind,
                    "difference": one.difference,
                    "ci95": [one.low, one.high],
                    "p": one.p_value,
                    "williams_p": williams if kind == "pearson" else None,
                }
            )
    return _corrected(rows)


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with Holm's correction for all comparisons of one kind."""
    for kind in dict.fromkeys(row["kind"] for row in rows):
        family = [row for row in rows if row["kind"] == kind and row["p"] is not None]
        for row, adjusted in zip(family, holm([row["p"] for row in family]), strict=True):
            row["holm"] = adjusted
    return [{"holm": None, **row} for row in rows]


def _ranked(judged: JudgedSet, values: Values) -> Judged:
    """The share of triplets ranked right; a tie is wrong, or half right in the row of that name."""
    rows: list[MetricRow] = []
    right: dict[str, list[float]] = {}
    for name, given in values.items():
        found = rank(judged.triplets, given)
        right[name] = [float(item.verdict == "right") for item in found.items]
        settings = {"measure": name}
        ties = found.ties / len(judged.triplets)
        rows += [
            _interval_row(judged.name, "accuracy", found.accuracy, settings),
            _interval_row(judged.name, "accuracy_half_ties", found.half, settings),
            _interval_row(
                judged.name, "ties", found.half._replace(value=ties, low=None, high=None), settings
            ),
        ]
    clusters = [one.cluster for one in judged.triplets]
    comparisons = [_ranking_difference(judged.name, a, b, right, clusters) for a, b in _pairs(list(values))]
    return Judged(rows, _corrected(comparisons), Counter(judged.notes))


def _ranking_difference(
    name: str, a: str, b: str, right: Mapping[str, list[float]], clusters: Sequence[str]
) -> dict[str, Any]:
    test = paired_test(right[a], right[b], clusters, bounds=SHARE)
    return {
        "set": name,
        "a": a,
        "b": b,
        "kind": "accuracy",
        "difference": test.difference,
        "ci95": [test.low, test.high],
        "p": test.p_value,
        "williams_p": None,
    }


def _interval_row(task: str, metric: str, found: Interval, settings: Settings) -> MetricRow:
    return MetricRow(
        task=task,
        metric=metric,
        value=found.value,
        ci95=[found.low, found.high],
        n=found.n,
        clusters=found.clusters,
        settings=settings,
    )
