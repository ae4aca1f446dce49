"""How well a metric agrees with people: correlations over summaries, within articles and over systems."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.errors import EnsueError
from ensue.metrics.correlation import KINDS, Kind, rowwise
from ensue.stats.correlation import correlation_draws, kendall_draws
from ensue.stats.paired_statistic import PairedDifference, paired_difference
from ensue.stats.ranges import CORRELATION
from ensue.stats.resampling import cluster_codes, draw_counts

Numbers = NDArray[np.float64]
CONSTANT = "constant values, which correlate with nothing"
CONSTANT_ARTICLES = "articles whose systems all have one value"


class Correlated(NamedTuple):
    """The correlations that are defined, by kind, and an account of what was left out of them.

    All draws of one seed were made of the same samples, so that those of two metrics can be compared.
    """

    figures: Mapping[Kind, Drawn]
    left_out: Mapping[str, int]


def over_summaries(
    metric: ArrayLike,
    human: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = ROUNDS,
    seed: int = 0,
) -> Correlated:
    """Correlate all summaries, one value each; those of one article (a cluster) are resampled whole."""
    x, y = _arrays(metric, human, 1)
    values = _values(x, y)
    if not values:
        return Correlated({}, {CONSTANT: len(x)})
    units = int(cluster_codes(clusters, len(x)).max()) + 1
    both = correlation_draws(x, y, clusters, rounds=rounds, seed=seed)
    tau = kendall_draws(x, y, clusters, rounds=rounds, seed=seed)
    draws: dict[Kind, Numbers] = {"pearson": both.pearson, "spearman": both.spearman, "kendall": tau}
    return Correlated(
        {kind: Drawn(values[kind], draws[kind], len(x), units, CORRELATION) for kind in values}, {}
    )


def summary_level(metric: ArrayLike, human: ArrayLike, *, rounds: int = ROUNDS, seed: int = 0) -> Correlated:
    """Return the mean over articles of the correlation over systems, from tables [articles, systems].

    So SummEval and REALSumm define it. An article all of whose systems have one value, by the metric or by
    people, has no correlation: it is left out, of every round as well, and counted. Articles are resampled.
    """
    x, y = _arrays(metric, human, 2)
    each = {kind: rowwise(kind, x, y) for kind in KINDS}
    defined = np.isfinite(each["pearson"])
    left_out = {CONSTANT_ARTICLES: int((~defined).sum())} if not defined.all() else {}
    if not defined.any():
        return Correlated({}, left_out)
    counts = draw_counts(len(x), rounds, np.random.default_rng(seed))[:, defined]
    kept = counts.sum(axis=1)
    kept[kept == 0] = np.nan
    return Correlated(
        {
            kind: Drawn(
                float(values[defined].mean()),
                counts @ values[defined] / kept,
                x[defined].size,
                len(x),
                CORRELATION,
            )
            for kind, values in each.items()
        },
        left_out,
    )


def system_level(metric: ArrayLike, human: ArrayLike, *, rounds: int = ROUNDS, seed: int = 0) -> Correlated:
    """Correlate the systems' means over articles, from tables [articles, systems].

    Articles are resampled and systems are not: the interval is that of these systems on other articles.
    """
    x, y = _arrays(metric, human, 2)
    once = np.ones((1, len(x)))
    values = _values(_means(once, x)[0], _means(once, y)[0])
    if not values:
        return Correlated({}, {CONSTANT: x.shape[1]})
    counts = draw_counts(len(x), rounds, np.random.default_rng(seed))
    means_x, means_y = _means(counts, x), _means(counts, y)
    return Correlated(
        {
            kind: Drawn(values[kind], rowwise(kind, means_x, means_y), x.shape[1], len(x), CORRELATION)
            for kind in values
        },
        {},
    )


def correlations(
    metric: ArrayLike,
    human: Mapping[str, ArrayLike],
    clusters: Sequence[Hashable] | None = None,
    *,
    seed: int = 0,
) -> list[tuple[dict[str, str], Correlated]]:
    """Correlate a metric with people at every level there is, each with the settings of its rows.

    Lists have one level, over summaries, and one human score; tables [articles, systems] have the level of systems
    and that of summaries for each human score. Fewer than two summaries or systems have none.
    """
    x = np.asarray(metric, dtype=np.float64)
    if x.shape[-1] < 2:
        return []
    if x.ndim == 1:
        return [({}, over_summaries(x, next(iter(human.values())), clusters, seed=seed))]
    return [
        ({"level": level, "human": score}, correlate(x, given, seed=seed))
        for score, given in human.items()
        for level, correlate in (("system", system_level), ("summary", summary_level))
    ]


def difference(a: Correlated, b: Correlated) -> dict[Kind, PairedDifference]:
    """Return one metric's correlations less another's, both of the same summaries, level and seed."""
    found: dict[Kind, PairedDifference] = {}
    for kind in KINDS:
        if kind not in a.figures or kind not in b.figures:
            continue
        one, other = a.figures[kind], b.figures[kind]
        if one.draws is None or other.draws is None or one.units != other.units:
            raise ValueError("Two correlations can be compared where both were drawn from the same samples.")
        found[kind] = paired_difference(one.value, other.value, one.draws, other.draws, one.units)
    return found


def _means(counts: Numbers, table: Numbers) -> Numbers:
    """Return the systems' means [rounds, systems] over articles that come up so often, over the size of the table.

    Equal means that were added up of other numbers can differ in their last bits, which would undo a tie; so they
    are rounded. No correlation depends on the scale.
    """
    size = float(np.abs(table).max()) or 1.0
    return np.asarray(np.round(counts @ (table / size) / len(table), 13))


def _values(x: Numbers, y: Numbers) -> dict[Kind, float]:
    """Return the correlation of each kind, or none at all where one of the lists is constant."""
    found = {kind: float(rowwise(kind, x[None], y[None])[0]) for kind in KINDS}
    return {} if any(math.isnan(value) for value in found.values()) else found


def _arrays(metric: ArrayLike, human: ArrayLike, dimensions: int) -> tuple[Numbers, Numbers]:
    """Return both as arrays of one shape, all of whose numbers are finite."""
    x, y = np.asarray(metric, dtype=np.float64), np.asarray(human, dtype=np.float64)
    if x.shape != y.shape or x.ndim != dimensions or x.shape[-1] < 2:
        wanted = "two lists" if dimensions == 1 else "two tables [articles, systems]"
        raise ValueError(f"This correlation needs {wanted} of one shape, not {x.shape} and {y.shape}.")
    for name, values in (("metric", x), ("human score", y)):
        if not np.isfinite(values).all():
            place = np.argwhere(~np.isfinite(values))[0].tolist()
            raise EnsueError(
                f"The {name} of summary {', '.join(str(one + 1) for one in place)} is not a number; "
                "leave the summary out or give it a value."
            )
    return x, y
