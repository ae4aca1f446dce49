"""From metric values and human judgments to rows: correlations, rankings, agreement, and who beats whom."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.benchmarks.people.agreement import drawn_alpha
from ensue.benchmarks.qags.data.files import JudgedSummary, Triplet
from ensue.benchmarks.qags.data.sets import JudgedSet
from ensue.benchmarks.qags.measures import QAGS, TO_BEAT, Values
from ensue.benchmarks.summaries.metaeval import CONSTANT_ARTICLES, Correlated, correlations, difference
from ensue.errors import EnsueError
from ensue.metrics.correlation import rowwise
from ensue.report.figure import Figure
from ensue.report.results import MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.paired import PairedTest, holm, paired_test
from ensue.stats.paired_statistic import PairedDifference, williams_test
from ensue.stats.ranges import SHARE

TOO_FEW = "sets of fewer than two summaries, which have no correlation"
# Two scores no further apart than this are the same: sums of the same numbers in another order differ by less.
TIE = 1e-9
Verdict = Literal["right", "tie", "wrong"]


class Ranking(NamedTuple):
    """All triplets ranked.

    `accuracy` counts a tie as wrong: a metric that cannot tell two sentences apart has not ranked the consistent
    one higher, and a metric that gives all sentences one score has 0. `half` counts a tie as half right, as a
    coin toss would on average: such a metric has 0.5. Triplets of one article are resampled together.
    """

    accuracy: Figure
    half: Figure
    verdicts: tuple[Verdict, ...]


class SetFindings(NamedTuple):
    """Rows for the table, differences between metrics, and counts of what could not be computed."""

    rows: list[MetricRow]
    comparisons: list[dict[str, Any]]
    notes: Counter[str]


def judge(judged: JudgedSet, values: Values) -> SetFindings:
    """Hold all metrics against what people said of one set."""
    if judged.triplets:
        return _ranked(judged, values)
    rows: list[MetricRow] = []
    notes: Counter[str] = Counter(judged.notes)
    comparisons: list[dict[str, Any]] = []
    if judged.judged and any(len(s.responses) > 1 for one in judged.judged for s in one.sentences):
        alpha = agreement(judged.judged)
        if np.isfinite(alpha.value):
            rows.append(alpha.row(judged.name, "alpha", {}))
        else:
            notes[f"{judged.name}: workers who all said the same, so that there is no alpha"] += alpha.n
    found = {name: correlations_of(judged, given) for name, given in values.items()}
    for name, levels in found.items():
        rows += correlation_rows(judged, levels, {"measure": name}, notes)
    for place, (settings, _) in enumerate(next(iter(found.values()), [])):
        at = {name: levels[place][1] for name, levels in found.items()}
        comparisons += _compared(judged, values, at, settings)
    if not found or not next(iter(found.values())):
        notes[TOO_FEW] += 1
    return SetFindings(rows, comparisons, notes)


def correlations_of(judged: JudgedSet, values: Sequence[float]) -> list[tuple[dict[str, str], Correlated]]:
    """Correlate one metric with people, at every level the set has."""
    if not judged.systems:
        return correlations(values, judged.human, judged.clusters)
    shape = (-1, len(judged.systems))
    human = {score: np.reshape(given, shape) for score, given in judged.human.items()}
    return correlations(np.reshape(values, shape), human)


def correlation_rows(
    judged: JudgedSet,
    levels: Sequence[tuple[Mapping[str, str], Correlated]],
    settings: Mapping[str, Any],
    notes: Counter[str],
) -> list[MetricRow]:
    """Return a row for each kind of correlation at each level; what has none is counted."""
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


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return every metric against the baseline to beat, and QAGS against every other."""
    beaten = [(name, TO_BEAT) for name in names if name != TO_BEAT and TO_BEAT in names]
    ours = [(QAGS, name) for name in names if QAGS in names and name not in (QAGS, TO_BEAT)]
    return beaten + ours


def _compared(
    judged: JudgedSet, values: Values, at: Mapping[str, Correlated], settings: Mapping[str, str]
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
            row = _comparison({"set": judged.name, **settings}, a, b, kind, one)
            rows.append({**row, "williams_p": williams if kind == "pearson" else None})
    return _corrected(rows)


def _corrected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with Holm's correction for all comparisons of one kind."""
    for kind in dict.fromkeys(row["kind"] for row in rows):
        family = [row for row in rows if row["kind"] == kind and row["p"] is not None]
        for row, adjusted in zip(family, holm([row["p"] for row in family]), strict=True):
            row["holm"] = adjusted
    return [{"holm": None, **row} for row in rows]


def _ranked(judged: JudgedSet, values: Values) -> SetFindings:
    """Report the share of triplets ranked right; a tie is wrong, or half right in the row of that name."""
    rows: list[MetricRow] = []
    right: dict[str, list[float]] = {}
    for name, given in values.items():
        found = rank(judged.triplets, given)
        right[name] = [float(verdict == "right") for verdict in found.verdicts]
        share = found.verdicts.count("tie") / len(judged.triplets)
        ties = found.half._replace(value=share, low=None, high=None)
        figures = {"accuracy": found.accuracy, "accuracy_half_ties": found.half, "ties": ties}
        rows += [figure.row(judged.name, metric, {"measure": name}) for metric, figure in figures.items()]
    clusters = [one.cluster for one in judged.triplets]
    comparisons = []
    for a, b in _pairs(list(values)):
        test = paired_test(right[a], right[b], clusters, bounds=SHARE)
        comparisons.append(_comparison({"set": judged.name}, a, b, "accuracy", test))
    return SetFindings(rows, _corrected(comparisons), Counter(judged.notes))


def rank(triplets: Sequence[Triplet], scores: Sequence[float]) -> Ranking:
    """Rank by the scores of each triplet's two sentences, the consistent one's first; the higher is to be its."""
    if not triplets or len(scores) != 2 * len(triplets):
        raise EnsueError(
            f"{len(triplets)} triplets need {2 * len(triplets)} scores, not {len(scores)}; score every pair."
        )
    verdicts: list[Verdict] = []
    for triplet, consistent, inconsistent in zip(triplets, scores[::2], scores[1::2], strict=True):
        if not (math.isfinite(consistent) and math.isfinite(inconsistent)):
            raise EnsueError(f"A score of triplet {triplet.id} is not a finite number; score it again.")
        verdicts.append(verdict_of(consistent, inconsistent))
    clusters = [triplet.cluster for triplet in triplets]
    right, half = (
        Figure(*clustered_interval([worth(verdict, tie) for verdict in verdicts], clusters, bounds=SHARE))
        for tie in (0.0, 0.5)
    )
    return Ranking(right, half, tuple(verdicts))


def verdict_of(consistent: float, inconsistent: float) -> Verdict:
    """Say whether the scores of two sentences rank them right.

    >>> verdict_of(0.5, 0.25), verdict_of(0.5, 0.5)
    ('right', 'tie')
    """
    gap = consistent - inconsistent
    return "tie" if abs(gap) <= TIE else "right" if gap > 0 else "wrong"


def worth(verdict: Verdict, tie: float) -> float:
    """Return what a verdict counts, a tie as much as is given."""
    return {"right": 1.0, "tie": tie, "wrong": 0.0}[verdict]


def _comparison(
    place: Mapping[str, str], a: str, b: str, kind: str, test: PairedTest | PairedDifference
) -> dict[str, Any]:
    return {
        **place,
        "a": a,
        "b": b,
        "kind": kind,
        "difference": test.difference,
        "ci95": [test.low, test.high],
        "p": test.p_value,
        "williams_p": None,
    }


def ratings(summaries: Sequence[JudgedSummary]) -> tuple[NDArray[np.float64], list[str]]:
    """Return each sentence's judgments, 1 for consistent, nan for none, a column a worker; and its summary's id."""
    responses = [one for summary in summaries for sentence in summary.sentences for one in sentence.responses]
    columns = {worker: place for place, worker in enumerate(dict.fromkeys(one.worker for one in responses))}
    sentences = [(summary.id, sentence) for summary in summaries for sentence in summary.sentences]
    table = np.full((len(sentences), len(columns)), np.nan)
    for place, (_, sentence) in enumerate(sentences):
        for response in sentence.responses:
            table[place, columns[response.worker]] = float(response.consistent)
    return table, [id for id, _ in sentences]


def agreement(summaries: Sequence[JudgedSummary], *, rounds: int = ROUNDS, seed: int = 0) -> Drawn:
    """Return Krippendorff's alpha of the judgments of sentences, nominal; summaries are resampled whole."""
    table, clusters = ratings(summaries)
    found = drawn_alpha(table, clusters, rounds=rounds, seed=seed)
    if found is None:
        raise ValueError("Alpha needs at least one sentence with two judgments.")
    return found
