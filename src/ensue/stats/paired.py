"""Paired permutation tests for two models on the same items, which come in clusters; Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.clustered import cluster_sums, clustered_interval, effective_share, jackknife_residuals
from ensue.stats.ranges import UNBOUNDED, Bounds

Numbers = NDArray[np.float64]
Ends = tuple[float | None, float | None]

EXACT_CLUSTERS = 14
LEVEL = 0.95
_CHUNK_NUMBERS = 4_000_000
# Sums of the same numbers with other signs round differently; equal within this share counts as equal.
_ROUNDING = 1e-9


class PairedTest(NamedTuple):
    """The mean of a − b with its 95 % interval and two-sided p-value.

    There is no interval for a single cluster, nor for equal differences of values without ends.
    """

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
    bounds: Bounds,
    rounds: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Test whether the mean of `a` differs from the mean of `b` on the same items.

    If the two models were alike, the sign of each cluster's difference would be a coin toss. The p-value is
    the share of sign patterns whose total is at least as far from zero as the one seen: over all patterns
    where at most 14 clusters differ, over `rounds` random ones otherwise, the observed pattern counted in.

    Both models' values lie within `bounds`. Between two ends, what a gains and what it loses each have their
    interval, from which that of the difference is put together; without ends it is the t interval of the
    differences. The interval never says more than the p-value: where that is above 5 % it reaches zero at least.

    >>> paired_test([1, 1, 1, 0], [0, 0, 0, 0], ["p", "q", "r", "s"], bounds=(0, 1)).p_value
    0.25
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise ValueError(f"A paired test needs equally many values, not {first.size} and {second.size}.")
    differences = first - second
    if np.abs(differences).max(initial=0.0) > bounds[1] - bounds[0]:
        raise ValueError(f"Differences are larger than values from {bounds[0]} to {bounds[1]} can have.")
    _, totals, _ = cluster_sums(differences, clusters)
    if rounds < 1:
        raise ValueError(f"A permutation test needs at least one round, not {rounds}.")
    p_value = _sign_flip_p_value(totals, rounds, np.random.default_rng(seed))
    ends = _ends(differences, clusters, bounds) if len(totals) > 1 else (None, None)
    low, high = reaching_zero(ends, p_value)
    return PairedTest(float(differences.mean()), low, high, p_value, len(differences), len(totals))


def reaching_zero(ends: Ends, p_value: float) -> Ends:
    """Widen an interval to zero where the p-value is above 5 %, so that it never says more than the test does."""
    low, high = ends
    if p_value > 1.0 - LEVEL and low is not None and high is not None:
        return min(low, 0.0), max(high, 0.0)
    return ends


def all_bits(count: int) -> NDArray[np.int64]:
    """Return every pattern of zeros and ones over `count` places, one a row."""
    return np.asarray((np.arange(2**count)[:, None] >> np.arange(count)) & 1, dtype=np.int64)


def _ends(differences: Numbers, clusters: Sequence[Hashable], bounds: Bounds) -> Ends:
    width = bounds[1] - bounds[0]
    if math.isinf(width):
        return clustered_interval(differences, clusters, bounds=UNBOUNDED, level=LEVEL)[1:3]
    parts = [np.maximum(differences, 0.0) / width, np.maximum(-differences, 0.0) / width]
    gain, loss = (effective_share(part, clusters, LEVEL) for part in parts)
    # Where nothing was lost, what was gained says how alike the items of a cluster are; and the reverse.
    if np.ptp(parts[0]) == 0.0 < np.ptp(parts[1]):
        gain = loss._replace(share=gain.share)
    elif np.ptp(parts[1]) == 0.0 < np.ptp(parts[0]):
        loss = gain._replace(share=loss.share)
    (least_gain, most_gain), (least_loss, most_loss) = gain.ends(), loss.ends()
    together = _correlation(parts[0], parts[1], clusters)
    below = _apart(gain.share - least_gain, most_loss - loss.share, together)
    above = _apart(most_gain - gain.share, loss.share - least_loss, together)
    middle = gain.share - loss.share
    return width * max(-1.0, middle - below), width * min(1.0, middle + above)


def _apart(one: float, other: float, together: float) -> float:
    """Return how far a gain less a loss may be off if each may be off so far (Zou 2007)."""
    return math.sqrt(max(0.0, one**2 + other**2 - 2.0 * together * one * other))


def _correlation(gains: Numbers, losses: Numbers, clusters: Sequence[Hashable]) -> float:
    """Return how far clusters that gain more than others also lose more; 0 where all gain or all lose alike."""
    left = [
        jackknife_residuals(float(part.mean()), *cluster_sums(part, clusters)[1:]) for part in (gains, losses)
    ]
    spread = float(np.linalg.norm(left[0]) * np.linalg.norm(left[1]))
    return float(left[0] @ left[1]) / spread if spread > 0.0 else 0.0


def _sign_flip_p_value(totals: Numbers, rounds: int, generator: np.random.Generator) -> float:
    observed = abs(float(totals.sum()))
    # A cluster without a difference is the same under either sign: leaving it out changes no probability.
    magnitudes = np.abs(totals[totals != 0.0])
    if len(magnitudes) == 0:
        return 1.0
    bar = observed - _ROUNDING * float(magnitudes.sum())
    if len(magnitudes) <= EXACT_CLUSTERS:
        return float(np.mean(np.abs((2.0 * all_bits(len(magnitudes)) - 1.0) @ magnitudes) >= bar))
    extreme = _count_extreme(magnitudes, bar, rounds, generator)
    return (extreme + 1) / (rounds + 1)


def _count_extreme(magnitudes: Numbers, bar: float, rounds: int, generator: np.random.Generator) -> int:
    """Count the random sign patterns, of `rounds`, that reach the bar."""
    # Among m clusters of equal magnitude only the number of plus signs matters, and that is binomial.
    sizes, multiplicity = np.unique(magnitudes, return_counts=True)
    chunk = max(1, _CHUNK_NUMBERS // len(sizes))
    extreme = 0
    for start in range(0, rounds, chunk):
        shape = (min(chunk, rounds - start), len(sizes))
        plus = generator.binomial(multiplicity, 0.5, size=shape)
        extreme += int(np.count_nonzero(np.abs((2.0 * plus - multiplicity) @ sizes) >= bar))
    return extreme


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values by Holm's step-down method, in the order given.

    Rejecting where the adjusted value is at most 0.05 keeps the chance of any false rejection at 5 %,
    whatever the dependence between the tests.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    for p_value in p_values:
        if math.isnan(p_value) or not 0.0 <= p_value <= 1.0:
            raise ValueError(f"A p-value lies between 0 and 1, not {p_value}.")
    adjusted = [0.0] * len(p_values)
    reached = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = reached
    return adjusted
