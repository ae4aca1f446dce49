"""A paired permutation test for two models on the same items, where items come in clusters."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.bootstrap import cluster_sums, clustered_interval

EXACT_CLUSTERS = 14
_CHUNK_NUMBERS = 4_000_000
# Sums of the same numbers with other signs round differently; equal within this share counts as equal.
_ROUNDING = 1e-9


class PairedTest(NamedTuple):
    """The mean of a − b with its 95 % interval and two-sided p-value; no interval for a single cluster."""

    difference: float
    low: float | None
    high: float | None
    p_value: float
    n: int
    clusters: int


def paired_test(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    rounds: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Is the mean of `a` different from the mean of `b` on the same items?

    If the two models were alike, the sign of each cluster's difference would be a coin toss. The p-value is
    the share of sign patterns whose total is at least as far from zero as the one seen: over all patterns
    where at most 14 clusters differ, over `rounds` random ones otherwise, the observed pattern counted in.
    The interval is the clustered bootstrap's on the differences.

    >>> paired_test([1, 1, 1, 0], [0, 0, 0, 0], ["p", "q", "r", "s"]).p_value
    0.25
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"A paired test needs equally many values, not {first.size} and {second.size}.")
    differences = first - second
    _, totals, _ = cluster_sums(differences, clusters)
    interval = clustered_interval(differences, clusters, rounds=rounds, seed=seed)
    p_value = _sign_flip_p_value(totals, rounds, np.random.default_rng(seed))
    return PairedTest(interval.value, interval.low, interval.high, p_value, interval.n, interval.clusters)


def _sign_flip_p_value(totals: NDArray[np.float64], rounds: int, generator: np.random.Generator) -> float:
    observed = abs(float(totals.sum()))
    # A cluster without a difference is the same under either sign: leaving it out changes no probability.
    magnitudes = np.abs(totals[totals != 0.0])
    if len(magnitudes) == 0:
        return 1.0
    bar = observed - _ROUNDING * float(magnitudes.sum())
    if len(magnitudes) <= EXACT_CLUSTERS:
        return float(np.mean(np.abs(_all_sign_patterns(len(magnitudes)) @ magnitudes) >= bar))
    extreme = _count_extreme(magnitudes, bar, rounds, generator)
    return (extreme + 1) / (rounds + 1)


def _all_sign_patterns(count: int) -> NDArray[np.float64]:
    """Every pattern of plus and minus one over `count` places, one a row."""
    bits = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
    return (2 * bits - 1).astype(np.float64)


def _count_extreme(
    magnitudes: NDArray[np.float64], bar: float, rounds: int, generator: np.random.Generator
) -> int:
    """How many of `rounds` random sign patterns reach the bar."""
    # Among m clusters of equal magnitude only the number of plus signs matters, and that is binomial.
    sizes, multiplicity = np.unique(magnitudes, return_counts=True)
    chunk = max(1, _CHUNK_NUMBERS // len(sizes))
    extreme = 0
    for start in range(0, rounds, chunk):
        shape = (min(chunk, rounds - start), len(sizes))
        plus = generator.binomial(multiplicity, 0.5, size=shape)
        extreme += int(np.count_nonzero(np.abs((2.0 * plus - multiplicity) @ sizes) >= bar))
    return extreme
