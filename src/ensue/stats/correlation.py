"""Bootstrap intervals for correlations, and for means of several of them, resampling pairs or whole clusters.
Bootstrap draws of Kendall's tau-b, resampling pairs or whole clusters.

scipy has tau of one sample at a time: 200 draws of 235 summaries take it 24 times as long (bench/agreement.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.resampling import cluster_codes, draw_counts
from ensue.stats.student import widened_tail

# Resampled counts are drawn in chunks of about this many numbers, so memory stays near 100 MB.
_CHUNK_NUMBERS = 2_000_000
_ROUNDING = 1e-12


class CorrelationDraws(NamedTuple):
    """Pearson's and Spearman's correlation in each round; nan where a round drew a constant."""

    pearson: NDArray[np.float64]
    spearman: NDArray[np.float64]


def correlation_draws(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> CorrelationDraws:
    """Both correlations of as many pairs (or clusters of pairs) as there are, drawn with replacement each round.

    Ranks are taken anew within every draw, as a correlation of the drawn sample would.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"A correlation needs two flat lists of equal length, not {a.shape} and {b.shape}.")
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")
    codes = cluster_codes(clusters, len(a))
    units = int(codes.max()) + 1
    generator = np.random.default_rng(seed)
    ranking_a, ranking_b = _Ranking(a), _Ranking(b)
    # Sums of squares lose digits far from zero; correlations do not depend on where zero is.
    a, b = a - a.mean(), b - b.mean()
    found = CorrelationDraws(np.empty(rounds), np.empty(rounds))
    chunk = max(1, _CHUNK_NUMBERS // len(a))
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        counts = draw_counts(units, stop - start, generator)[:, codes]
        found.pearson[start:stop] = _weighted(counts, a, b)
        found.spearman[start:stop] = _weighted(counts, ranking_a.within(counts), ranking_b.within(counts))
    return found


def percentile_interval(
    draws: NDArray[np.float64], units: int, *, level: float = 0.95
) -> tuple[float | None, float | None]:
    """The middle of the draws of so many units: `level` of them, and some more where the units are few.

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


class _Ranking:
    """The order of a list and its ties, found once for all draws."""

    def __init__(self, values: NDArray[np.float64]) -> None:
        self._order = np.argsort(values, kind="stable")
        ordered = values[self._order]
        self._starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        kind = np.zeros(len(values), dtype=np.int64)
        kind[self._starts[1:]] = 1
        self._kind = np.empty(len(values), dtype=np.int64)
        self._kind[self._order] = np.cumsum(kind)

    def within(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean rank of each value in samples that hold it so many times, from the middle of all ranks."""
        sizes = np.add.reduceat(counts[:, self._order], self._starts, axis=1)
        middles = np.cumsum(sizes, axis=1) - sizes / 2.0
        return np.asarray(middles[:, self._kind] - counts.sum(axis=1, keepdims=True) / 2.0)


def _weighted(
    counts: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The correlation of each round's sample, whose values are one row for all rounds or a row for each."""
    total = counts.sum(axis=1)

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        summed = counts @ values if values.ndim == 1 else np.einsum("ij,ij->i", counts, values)
        return np.asarray(summed / total)

    mean_a, mean_b = mean(a), mean(b)
    square_a, square_b = mean(a * a), mean(b * b)
    spread_a, spread_b = square_a - mean_a**2, square_b - mean_b**2
    constant = (spread_a <= _ROUNDING * square_a) | (spread_b <= _ROUNDING * square_b)
    spread = np.where(constant, np.nan, spread_a * spread_b)
    return np.asarray(np.clip((mean(a * b) - mean_a * mean_b) / np.sqrt(spread), -1.0, 1.0))


Numbers = NDArray[np.float64]

# Resampled counts are drawn in chunks of about this many numbers, so memory stays near 100 MB.
_CHUNK_NUMBERS = 2_000_000


def kendall_draws(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> Numbers:
    """Tau-b of as many pairs (or clusters of pairs) as there are, drawn with replacement each round.

    A pair that is drawn twice is tied with itself in both lists, as in a sample written out. A round that drew
    a constant is nan. Equal seeds and clusters draw the same samples, so that the draws of two metrics on the
    same summaries belong together round by round.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"A correlation needs two flat lists of equal length, not {a.shape} and {b.shape}.")
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")
    codes = cluster_codes(clusters, len(a))
    units = int(codes.max()) + 1
    generator = np.random.default_rng(seed)
    agreement = np.sign(a[:, None] - a[None, :]) * np.sign(b[:, None] - b[None, :])
    kinds_a, kinds_b = _one_hot_kinds(a), _one_hot_kinds(b)
    found = np.empty(rounds)
    chunk = max(1, _CHUNK_NUMBERS // len(a))
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        counts = draw_counts(units, stop - start, generator)[:, codes]
        agreeing = np.einsum("ij,ij->i", counts @ agreement, counts)
        everything = counts.sum(axis=1) ** 2
        apart = [everything - ((counts @ kinds) ** 2).sum(axis=1) for kinds in (kinds_a, kinds_b)]
        spread = np.sqrt(apart[0]) * np.sqrt(apart[1])
        found[start:stop] = np.clip(agreeing / np.where(spread > 0, spread, np.nan), -1.0, 1.0)
    return found


def _one_hot_kinds(values: Numbers) -> Numbers:
    """A column for each distinct value, with ones where it stands."""
    _, kind = np.unique(values, return_inverse=True)
    kind = kind.reshape(-1)
    table = np.zeros((len(values), int(kind.max()) + 1))
    table[np.arange(len(values)), kind] = 1.0
    return table
