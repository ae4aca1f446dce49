"""Bootstrap draws and intervals of correlations, resampling pairs or whole clusters.

scipy has Kendall's tau of one sample at a time: 200 draws of 235 summaries take it 24 times as long
(bench/agreement.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.resampling import cluster_codes, draw_counts, one_hot
from ensue.stats.student import widened_tail

Numbers = NDArray[np.float64]

# Resampled counts are drawn in chunks of about this many numbers, so memory stays near 100 MB.
_CHUNK_NUMBERS = 2_000_000
_ROUNDING = 1e-12


class CorrelationDraws(NamedTuple):
    """Pearson's and Spearman's correlation in each round; nan where a round drew a constant."""

    pearson: Numbers
    spearman: Numbers


def correlation_draws(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> CorrelationDraws:
    """Draw both correlations of as many pairs (or clusters of pairs) as there are, with replacement each round.

    Ranks are taken anew within every draw, as a correlation of the drawn sample would.
    """
    a, b = _pair(x, y)
    ranking_a, ranking_b = _Ranking(a), _Ranking(b)
    # Sums of squares lose digits far from zero; correlations do not depend on where zero is.
    a, b = a - a.mean(), b - b.mean()
    found = CorrelationDraws(np.empty(rounds), np.empty(rounds))
    for place, counts in _samples(len(a), clusters, rounds, seed):
        found.pearson[place] = _weighted(counts, a, b)
        found.spearman[place] = _weighted(counts, ranking_a.within(counts), ranking_b.within(counts))
    return found


def kendall_draws(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> Numbers:
    """Draw tau-b of as many pairs (or clusters of pairs) as there are, with replacement each round.

    A pair that is drawn twice is tied with itself in both lists, as in a sample written out. A round that drew
    a constant is nan. Equal seeds and clusters draw the same samples, so that the draws of two metrics on the
    same summaries belong together round by round.
    """
    a, b = _pair(x, y)
    agreement = np.sign(a[:, None] - a[None, :]) * np.sign(b[:, None] - b[None, :])
    kinds_a, kinds_b = _one_hot_kinds(a), _one_hot_kinds(b)
    found = np.empty(rounds)
    for place, counts in _samples(len(a), clusters, rounds, seed):
        agreeing = np.einsum("ij,ij->i", counts @ agreement, counts)
        everything = counts.sum(axis=1) ** 2
        apart = [everything - ((counts @ kinds) ** 2).sum(axis=1) for kinds in (kinds_a, kinds_b)]
        spread = np.sqrt(apart[0]) * np.sqrt(apart[1])
        found[place] = np.clip(agreeing / np.where(spread, spread, np.nan), -1.0, 1.0)
    return found


def percentile_interval(
    draws: Numbers, units: int, *, level: float = 0.95
) -> tuple[float | None, float | None]:
    """Return the middle of the draws of so many units: `level` of them, and some more where the units are few.

    Draws that are nan are left out; there is no interval where fewer than half are left, nor of a single unit.

    >>> [round(end, 2) for end in percentile_interval(np.arange(101.0), 1_000_000, level=0.5)]
    [25.0, 75.0]
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"The level of an interval lies between 0 and 1, not {level}.")
    defined = draws[np.isfinite(draws)]
    if 2 * len(defined) < len(draws) or len(defined) == 0 or units < 2:
        return None, None
    tail = widened_tail(level, units)
    low, high = np.quantile(defined, [tail, 1.0 - tail])
    return float(low), float(high)


def ranks(values: ArrayLike) -> Numbers:
    """Rank each value from 1; equal values share the mean of the ranks they take up.

    >>> ranks([30, 10, 30, 20]).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, kind, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    middles = np.cumsum(sizes) - (sizes - 1) / 2.0
    return np.asarray(middles[kind])


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[Numbers, Numbers]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"A correlation needs two flat lists of equal length, not {a.shape} and {b.shape}.")
    return a, b


def _samples(
    n: int, clusters: Sequence[Hashable] | None, rounds: int, seed: int
) -> Iterator[tuple[slice, Numbers]]:
    """Yield the counts of each item in some rounds at a time, with the place of those rounds among all."""
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")
    codes = cluster_codes(clusters, n)
    units = int(codes.max()) + 1
    generator = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_NUMBERS // n)
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        yield slice(start, stop), draw_counts(units, stop - start, generator)[:, codes]


class _Ranking:
    """The order of a list and its ties, found once for all draws."""

    def __init__(self, values: Numbers) -> None:
        _, self._kind, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self._order = np.argsort(self._kind)
        self._starts = np.cumsum(sizes) - sizes

    def within(self, counts: Numbers) -> Numbers:
        """Return the mean rank of each value, less a half, in samples that hold it so many times."""
        sizes = np.add.reduceat(counts[:, self._order], self._starts, axis=1)
        middles = np.cumsum(sizes, axis=1) - sizes / 2.0
        return np.asarray(middles[:, self._kind])


def _weighted(counts: Numbers, a: Numbers, b: Numbers) -> Numbers:
    """Return the correlation of each round's sample, whose values are one row for all rounds or a row for each."""
    total = counts.sum(axis=1)

    def mean(values: Numbers) -> Numbers:
        summed = counts @ values if values.ndim == 1 else np.einsum("ij,ij->i", counts, values)
        return np.asarray(summed / total)

    mean_a, mean_b = mean(a), mean(b)
    square_a, square_b = mean(a * a), mean(b * b)
    spread_a, spread_b = square_a - mean_a**2, square_b - mean_b**2
    constant = (spread_a <= _ROUNDING * square_a) | (spread_b <= _ROUNDING * square_b)
    spread = np.where(constant, np.nan, spread_a * spread_b)
    return np.asarray(np.clip((mean(a * b) - mean_a * mean_b) / np.sqrt(spread), -1.0, 1.0))


def _one_hot_kinds(values: Numbers) -> Numbers:
    """Return a column for each distinct value, with ones where it stands."""
    kinds, kind = np.unique(values, return_inverse=True)
    return one_hot(kind, len(kinds))
