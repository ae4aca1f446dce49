"""Bootstrap intervals for a mean whose items come in clusters, such as twenty shuffles of one document."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Resampled counts are drawn in chunks of about this many numbers, so memory stays near 32 MB.
_CHUNK_NUMBERS = 4_000_000


class Interval(NamedTuple):
    """A mean with its interval; `low` and `high` are None where there is only one cluster to resample."""

    value: float
    low: float | None
    high: float | None
    n: int
    clusters: int


def clustered_interval(
    values: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The mean of `values` and its percentile bootstrap interval, resampling whole clusters.

    Items of one cluster (the shuffles of one document) are not independent, so a cluster is drawn with all
    its items or not at all. Clusters differ in size, so each round's estimate is the ratio of the drawn sum
    to the drawn count. One cluster says nothing about the spread between clusters: its interval is None.

    >>> clustered_interval([1, 1, 0, 1], ["a", "a", "b", "b"])
    Interval(value=0.75, low=0.5, high=1.0, n=4, clusters=2)
    """
    numbers, sums, sizes = cluster_sums(values, clusters)
    _check(level, rounds)
    n, count = len(numbers), len(sums)
    smallest, largest = float(numbers.min()), float(numbers.max())
    # The mean of equal numbers can differ from them in the last bit; an interval must not.
    value = smallest if smallest == largest else float(numbers.mean())
    if count == 1:
        return Interval(value, None, None, n, count)
    if smallest == largest:
        return Interval(value, value, value, n, count)
    estimates = _resampled_means(sums, sizes, rounds, np.random.default_rng(seed))
    tail = (1.0 - level) / 2.0
    low, high = np.clip(np.quantile(estimates, [tail, 1.0 - tail]), smallest, largest)
    return Interval(value, float(low), float(high), n, count)


def clustered_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    level: float = 0.95,
    rounds: int = 10_000,
    seed: int = 0,
) -> Interval:
    """The ratio of two sums, such as nats per word, and its bootstrap interval, resampling whole clusters.

    Every denominator must be positive, so that every draw of clusters has a ratio.

    >>> clustered_ratio([2, 2, 4], [1, 1, 4], ["a", "a", "b"])
    Interval(value=1.3333333333333333, low=1.0, high=2.0, n=3, clusters=2)
    """
    numbers, sums, _ = cluster_sums(numerators, clusters)
    divisors, weights, _ = cluster_sums(denominators, clusters)
    _check(level, rounds)
    if float(divisors.min()) <= 0.0:
        raise ValueError("A ratio of sums needs positive denominators.")
    value = float(numbers.sum() / divisors.sum())
    if len(sums) == 1:
        return Interval(value, None, None, len(numbers), 1)
    estimates = _resampled_means(sums, weights, rounds, np.random.default_rng(seed))
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(estimates, [tail, 1.0 - tail])
    # Equal ratios can differ in the last bit when they are added up; the interval must hold the value.
    return Interval(value, min(float(low), value), max(float(high), value), len(numbers), len(sums))


def _check(level: float, rounds: int) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"The level of an interval lies between 0 and 1, not {level}.")
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")


def cluster_sums(
    values: ArrayLike, clusters: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """The values as an array, and each cluster's sum and number of values in order of appearance."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError("An interval needs a flat, non-empty list of values.")
    if len(numbers) != len(clusters):
        raise ValueError(f"There are {len(numbers)} values but {len(clusters)} cluster names.")
    if not np.isfinite(numbers).all():
        raise ValueError("An interval needs finite values: leave out or score what is missing first.")
    codes: dict[Hashable, int] = {}
    index = np.fromiter((codes.setdefault(name, len(codes)) for name in clusters), np.int64, len(numbers))
    sums = np.bincount(index, weights=numbers).astype(np.float64)
    return numbers, sums, np.bincount(index).astype(np.int64)


def _resampled_means(
    sums: NDArray[np.float64],
    sizes: NDArray[np.int64] | NDArray[np.float64],
    rounds: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """One mean, or other ratio of sums, per round, each of as many clusters as there are, drawn with replacement."""
    # Clusters with equal sum and size are interchangeable. Drawing how often each *kind* comes up is the same
    # distribution, and right-or-wrong scores have few kinds: 1,000 documents of 20 items have at most 21.
    # The kinds come out sorted, so the order in which items were read does not matter.
    kinds, multiplicity = np.unique(np.stack([sums, sizes], axis=1), axis=0, return_counts=True)
    chances = multiplicity / len(sums)
    chunk = max(1, _CHUNK_NUMBERS // len(kinds))
    estimates = np.empty(rounds)
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        draws = generator.multinomial(len(sums), chances, size=stop - start) @ kinds
        estimates[start:stop] = draws[:, 0] / draws[:, 1]
    return estimates
