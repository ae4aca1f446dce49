"""Paired tests for metrics that are no means of items, such as F1 or a correlation, where items come in clusters.

Such a metric is a function of sums: of how often which label was given where which was right, of products of scores.
With the sums of every cluster one can exchange the two systems' answers to it, or draw it twice, and compute the
metric again without looking at the items. Two metrics' correlations with people have a paired bootstrap and Williams'
test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.correlation import correlation_draws, percentile_interval, ranks
from ensue.stats.paired import EXACT_CLUSTERS, LEVEL, PairedTest, all_bits, reaching_zero
from ensue.stats.resampling import cluster_codes, sum_draws
from ensue.stats.student import two_sided_t

Numbers = NDArray[np.float64]
# From sums [..., columns] to a number each.
Statistic = Callable[[Numbers], Numbers]

_CHUNK_NUMBERS = 4_000_000
# The same metric of the same counts, added up in another order, may differ by so much.
_ROUNDING = 1e-10
# Columns of `products`: one, x, y, x², y², xy.
_PRODUCTS = 6


def paired_statistic_test(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable],
    statistic: Statistic,
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Test whether a statistic of the summed rows of `a` differs from that of `b`; tables are [items, columns].

    If the two systems were alike, it would not matter whose answers to a cluster are whose. The p-value is the
    share of exchanges whose difference is at least as far from zero as the one seen: over all exchanges where at
    most 14 clusters differ, over `rounds` random ones otherwise, the observed one counted in. The interval is that
    of the paired bootstrap over clusters; where the p-value is above 5 %, it reaches zero at least.

    >>> share = lambda sums: sums[..., 0] / sums[..., 1]
    >>> a, b = [[1, 1], [1, 1], [1, 1], [0, 1]], [[0, 1], [0, 1], [0, 1], [0, 1]]
    >>> paired_statistic_test(a, b, ["p", "q", "r", "s"], share).p_value
    0.25
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 2 or first.shape != second.shape or first.size == 0:
        raise ValueError(f"Two tables of one shape are needed, not {first.shape} and {second.shape}.")
    codes = cluster_codes(clusters, len(first))
    difference = float(statistic(first.sum(axis=0)) - statistic(second.sum(axis=0)))
    p_value = exchange_p_value(first, second, codes, statistic, rounds=rounds, seed=seed)
    columns = first.shape[1]
    # A list, since the codes are hashed one by one.
    drawn = sum_draws(np.hstack([first, second]), codes.tolist(), rounds=rounds, seed=seed)
    draws = statistic(drawn[:, :columns]) - statistic(drawn[:, columns:])
    return _test(difference, draws, p_value, len(first), int(codes.max()) + 1)


def paired_correlation_test(
    kind: str,
    a: ArrayLike,
    b: ArrayLike,
    gold: ArrayLike,
    clusters: Sequence[Hashable],
    sets: Sequence[Hashable] | None = None,
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Test whether the `mean_correlation` of one system's scores with the gold scores differs from another's.

    Two systems may score on scales of their own, so what is exchanged between them are standard scores (ranks, for
    Spearman's correlation). The bootstrap takes ranks anew in every round.
    """
    right, (first, second) = np.asarray(gold, dtype=np.float64), (_answers(a), _answers(b))
    if first.shape != second.shape or len(first) != len(right):
        raise ValueError(f"Scores of one shape are needed, not {first.shape}, {second.shape}, {right.shape}.")
    parts = _parts(sets, len(right))
    codes = cluster_codes(clusters, len(right))
    statistic = mean_over(correlation_of_sums, _PRODUCTS)
    tables = [_products_by_part(kind, given, right, parts) for given in (first, second)]
    p_value = exchange_p_value(tables[0], tables[1], codes, statistic, rounds=rounds, seed=seed)
    # Ranks of every draw take time, and the ends of an interval need fewer draws than a small p-value.
    draws = [
        _mean_draws(kind, given, right, codes, parts, max(1, rounds // 5), seed) for given in (first, second)
    ]
    values = [float(statistic(table.sum(axis=0))) for table in tables]
    units = int(codes.max()) + 1
    return _test(values[0] - values[1], draws[0] - draws[1], p_value, len(right), units)


def mean_correlation(
    kind: str, given: ArrayLike, gold: ArrayLike, sets: Sequence[Hashable] | None = None
) -> float:
    """Return the mean, over sets of items and columns of scores, of the correlation with the gold scores.

    A correlation with scores that are all the same counts as 0.

    >>> mean_correlation("spearman", [[1, 3], [2, 3], [5, 3]], [1, 2, 3])
    0.5
    """
    right = np.asarray(gold, dtype=np.float64)
    table = _products_by_part(kind, _answers(given), right, _parts(sets, len(right)))
    return float(mean_over(correlation_of_sums, _PRODUCTS)(table.sum(axis=0)))


def exchange_p_value(
    a: Numbers,
    b: Numbers,
    codes: NDArray[np.int64],
    statistic: Statistic,
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> float:
    """Return the two-sided p-value of exchanging the rows of whole clusters between two tables."""
    sums = np.zeros((int(codes.max()) + 1, 2 * a.shape[1]))
    np.add.at(sums, codes, np.hstack([a, b]))
    total_a, total_b = sums[:, : a.shape[1]].sum(axis=0), sums[:, a.shape[1] :].sum(axis=0)
    # Clusters of equal sums are interchangeable: only how many of them are exchanged matters, which is binomial.
    kinds, multiplicity = np.unique(sums, axis=0, return_counts=True)
    change = kinds[:, a.shape[1] :] - kinds[:, : a.shape[1]]
    # A cluster whose answers are the same is the same after an exchange.
    differs = np.any(change != 0.0, axis=1)
    change, multiplicity = change[differs], multiplicity[differs]
    if len(change) == 0:
        return 1.0
    bar = abs(float(statistic(total_a) - statistic(total_b))) - _ROUNDING

    def extreme(exchanged: Numbers) -> NDArray[np.bool_]:
        moved = exchanged @ change
        return np.asarray(np.abs(statistic(total_a + moved) - statistic(total_b - moved)) >= bar)

    units = int(multiplicity.sum())
    if units <= EXACT_CLUSTERS:
        patterns = all_bits(units).astype(np.float64)
        ends = np.cumsum(multiplicity)
        return float(np.mean(extreme(np.add.reduceat(patterns, ends - multiplicity, axis=1))))
    generator = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_NUMBERS // max(len(change), change.shape[1]))
    reached = 0
    for start in range(0, rounds, chunk):
        size = (min(chunk, rounds - start), len(change))
        reached += int(extreme(generator.binomial(multiplicity, 0.5, size=size).astype(np.float64)).sum())
    return (reached + 1) / (rounds + 1)


def mean_over(statistic: Statistic, columns: int) -> Statistic:
    """Return the mean of a statistic over blocks of so many columns: several sets, or several answers to one."""

    def of_sums(sums: Numbers) -> Numbers:
        return np.asarray(statistic(sums.reshape(*sums.shape[:-1], -1, columns)).mean(axis=-1))

    return of_sums


def products(x: ArrayLike, y: ArrayLike) -> Numbers:
    """Return what a correlation is made of [items, 6], to be added up."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return np.stack([np.ones_like(a), a, b, a * a, b * b, a * b], axis=1)


def correlation_of_sums(sums: Numbers) -> Numbers:
    """Return Pearson's correlation of the items whose `products` were added up; 0 where there is none.

    >>> round(float(correlation_of_sums(products([1, 2, 3], [2, 4, 7]).sum(axis=0))), 6)
    0.993399
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    spread = (xx - x * x / n) * (yy - y * y / n)
    constant = spread <= 1e-12 * xx * yy
    found = (xy - x * y / n) / np.sqrt(np.where(constant, 1.0, spread))
    return np.where(constant, 0.0, np.clip(found, -1.0, 1.0))


def _own_scale(kind: str, values: Numbers) -> Numbers:
    """Return standard scores (of ranks, for Spearman's correlation); all 0 where there is no spread."""
    numbers = ranks(values) if kind == "spearman" else values
    deviations = numbers - numbers.mean()
    spread = float(np.sqrt(np.mean(deviations**2)))
    if spread <= 1e-13 * float(np.abs(numbers).max()):
        return np.zeros_like(numbers)
    return np.asarray(deviations / spread)


def _answers(given: ArrayLike) -> Numbers:
    """Return scores as a table [items, ways]."""
    table = np.asarray(given, dtype=np.float64)
    return table[:, None] if table.ndim == 1 else table


def _parts(sets: Sequence[Hashable] | None, n: int) -> list[NDArray[np.int64]]:
    """Return the places of the items of each set."""
    codes = cluster_codes([None] * n if sets is None else sets, n)
    return [np.flatnonzero(codes == number) for number in range(int(codes.max()) + 1)]


def _products_by_part(
    kind: str, given: Numbers, gold: Numbers, parts: Sequence[NDArray[np.int64]]
) -> Numbers:
    """Return a block of `products` for every part and column of scores, 0 in the rows of other parts."""
    blocks = []
    for places in parts:
        right = _own_scale(kind, gold[places])
        for scores in given[places].T:
            block = np.zeros((len(gold), _PRODUCTS))
            block[places] = products(_own_scale(kind, scores), right)
            blocks.append(block)
    return np.hstack(blocks)


def _mean_draws(
    kind: str,
    given: Numbers,
    gold: Numbers,
    codes: NDArray[np.int64],
    parts: Sequence[NDArray[np.int64]],
    rounds: int,
    seed: int,
) -> Numbers:
    """Draw the mean correlation; every part has samples of its own, the same for all scores of it."""
    drawn = []
    for number, places in enumerate(parts):
        clusters = codes[places].tolist()
        for scores in given[places].T:
            found = correlation_draws(scores, gold[places], clusters, rounds=rounds, seed=seed + number)
            drawn.append(np.nan_to_num(found.spearman if kind == "spearman" else found.pearson))
    return np.asarray(np.mean(drawn, axis=0))


def _test(difference: float, draws: Numbers, p_value: float, n: int, clusters: int) -> PairedTest:
    if clusters == 1:
        return PairedTest(difference, None, None, p_value, n, clusters)
    low, high = reaching_zero(percentile_interval(draws, clusters, level=LEVEL), p_value)
    return PairedTest(difference, low, high, p_value, n, clusters)


class PairedDifference(NamedTuple):
    """A correlation less another, its 95 % interval, and the bootstrap's two-sided p-value.

    Interval and p-value are None where fewer than half of the rounds have both correlations.
    """

    difference: float
    low: float | None
    high: float | None
    p_value: float | None


class WilliamsTest(NamedTuple):
    """The statistic, its degrees of freedom and the two-sided p-value."""

    t: float
    df: int
    p_value: float


def paired_difference(
    a: float, b: float, draws_a: ArrayLike, draws_b: ArrayLike, units: int
) -> PairedDifference:
    """Compare two correlations whose draws were made of the same samples of so many units, round by round.

    The p-value is twice the share of rounds on the rarer side of zero, those at zero on both sides and the
    observed sample counted in: it is never 0, and never below 2 / (rounds + 1).

    >>> paired_difference(0.5, 0.2, [0.4, 0.5, 0.6], [0.1, 0.2, 0.3], 20)[0]
    0.3
    """
    first, second = np.asarray(draws_a, dtype=np.float64), np.asarray(draws_b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"Draws belong together round by round, not {first.shape} and {second.shape}.")
    gaps: NDArray[np.float64] = first - second
    low, high = percentile_interval(gaps, units)
    if low is None or high is None:
        return PairedDifference(a - b, None, None, None)
    defined = gaps[np.isfinite(gaps)]
    rarer = min(int((defined <= 0.0).sum()), int((defined >= 0.0).sum()))
    return PairedDifference(a - b, low, high, min(1.0, 2.0 * (rarer + 1) / (len(defined) + 1)))


def williams_test(r_a: float, r_b: float, r_ab: float, n: int) -> WilliamsTest:
    """Apply Williams' test (1959) to two correlations with one variable, which correlate with each other at `r_ab`.

    It is made for Pearson's correlation of independent pairs, normally distributed; for ranks and for several
    systems on one article it only stands beside the bootstrap as a cross-check.

    >>> found = williams_test(0.5, 0.3, 0.6, 103)
    >>> round(found.t, 4), found.df, round(found.p_value, 6)
    (2.5686, 100, 0.011689)
    """
    if n < 4:
        raise ValueError(f"Williams' test needs at least four items, not {n}.")
    if not all(-1.0 <= r <= 1.0 for r in (r_a, r_b, r_ab)):
        raise ValueError(f"Correlations lie between -1 and 1, not {r_a}, {r_b} and {r_ab}.")
    df = n - 3
    if r_a == r_b:
        return WilliamsTest(0.0, df, 1.0)
    determinant = max(0.0, 1.0 - r_a**2 - r_b**2 - r_ab**2 + 2.0 * r_a * r_b * r_ab)
    mean = (r_a + r_b) / 2.0
    below = 2.0 * determinant * (n - 1) / df + mean**2 * (1.0 - r_ab) ** 3
    above = (n - 1) * (1.0 + r_ab)
    t = (r_a - r_b) * math.sqrt(above / below) if below > 0.0 else math.copysign(math.inf, r_a - r_b)
    return WilliamsTest(t, df, two_sided_t(t, df))
