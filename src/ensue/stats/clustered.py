"""Intervals for a mean or a ratio of sums whose items come in clusters, such as twenty shuffles of one document.

A mean of values that lie between two ends has Wilson's interval on the number of independent items that would say as
much (the effective number), with Student's t; other means and ratios have the t interval of the jackknife over
clusters. How often they hold the truth is simulated in bench/coverage.py and shown in docs/scoring.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.ranges import Bounds
from ensue.stats.resampling import cluster_codes
from ensue.stats.student import normal_quantile, student_quantile

Numbers = NDArray[np.float64]

# Few clusters, or a mean near an end, show less than there is of how alike the items of a cluster are. So a little
# of a cluster is made up whose items are all alike: this much of one. Simulation chose it: less holds the truth too
# seldom where one cluster in many is bad, more is wide for nothing where items of a cluster are not alike at all.
MADE_UP = 0.05
# What is left of equal numbers after their mean was taken off is rounding below this share of their size.
_ROUNDING = 1e-12


class Interval(NamedTuple):
    """A mean with its interval; `low` and `high` are None where nothing shows how far the value may be off."""

    value: float
    low: float | None
    high: float | None
    n: int
    clusters: int


class Effective(NamedTuple):
    """A mean share, how many independent right-or-wrong answers say as much of it, and the quantile to use."""

    share: float
    n: float
    quantile: float

    def ends(self) -> tuple[float, float]:
        return wilson(self.share, self.n, self.quantile)


def clustered_interval(
    values: ArrayLike, clusters: Sequence[Hashable], *, bounds: Bounds, level: float = 0.95
) -> Interval:
    """Return the mean of `values`, which lie within `bounds`, and its interval; clusters are independent.

    One cluster says nothing about the spread between clusters: its interval is None. So is that of equal values
    without ends. Equal values between two ends have the interval of as many right-or-wrong answers as clusters.

    >>> found = clustered_interval([1, 1, 1, 1, 1], "abcde", bounds=(0, 1))
    >>> found.value, round(found.low, 3), found.high
    (1.0, 0.566, 1.0)
    """
    numbers, sums, sizes = cluster_sums(values, clusters)
    _check(level)
    lowest, highest = bounds
    smallest, largest = float(numbers.min()), float(numbers.max())
    if not lowest <= smallest <= largest <= highest:
        raise ValueError(f"Values from {smallest} to {largest} are not within {lowest} and {highest}.")
    # The mean of equal numbers can differ from them in the last bit.
    value = smallest if smallest == largest else float(numbers.mean())
    if len(sums) == 1:
        return Interval(value, None, None, len(numbers), 1)
    if math.isinf(highest - lowest):
        return _around(value, _half_width(value, sums, sizes, level), bounds, len(numbers), len(sums))
    width = highest - lowest
    effective = effective_share((numbers - lowest) / width, clusters, level)
    low, high = (lowest + width * end for end in effective.ends())
    return Interval(value, min(low, value), max(high, value), len(numbers), len(sums))


def clustered_ratio(
    numerators: ArrayLike,
    denominators: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    bounds: Bounds,
    level: float = 0.95,
) -> Interval:
    """Return the ratio of two sums, such as nats per word, and the t interval of its jackknife over clusters.

    Every denominator must be positive. The ratio lies within `bounds`, and so does its interval.

    >>> found = clustered_ratio([2, 2, 4], [1, 1, 4], ["a", "a", "b"], bounds=(0.0, float("inf")))
    >>> round(found.value, 3), found.low, round(found.high, 2)
    (1.333, 0.0, 8.03)
    """
    numbers, sums, _ = cluster_sums(numerators, clusters)
    divisors, weights, _ = cluster_sums(denominators, clusters)
    _check(level)
    if float(divisors.min()) <= 0.0:
        raise ValueError("A ratio of sums needs positive denominators.")
    value = float(numbers.sum() / divisors.sum())
    if len(sums) == 1:
        return Interval(value, None, None, len(numbers), 1)
    return _around(value, _half_width(value, sums, weights, level), bounds, len(numbers), len(sums))


def mean_interval(found: Sequence[Interval], weights: Sequence[float]) -> Interval:
    """Return the weighted mean of several means of independent samples, whose weights add up to 1.

    Each end is as far from the mean as the ends of all are from theirs, squared and added up (Zou and Donner 2008).

    >>> one = Interval(0.5, 0.2, 0.9, 10, 5)
    >>> [round(number, 3) for number in mean_interval([one, one], [0.5, 0.5])[:3]]
    [0.5, 0.288, 0.783]
    """
    value = math.fsum(weight * one.value for weight, one in zip(weights, found, strict=True))
    n, clusters = sum(one.n for one in found), sum(one.clusters for one in found)
    below = above = 0.0
    for weight, one in zip(weights, found, strict=True):
        if one.low is None or one.high is None:
            return Interval(value, None, None, n, clusters)
        below += (weight * (one.value - one.low)) ** 2
        above += (weight * (one.high - one.value)) ** 2
    return Interval(value, value - math.sqrt(below), value + math.sqrt(above), n, clusters)


def effective_share(shares: Numbers, clusters: Sequence[Hashable], level: float) -> Effective:
    """Return what the mean of values from 0 to 1 is worth, of two clusters at least."""
    _, sums, sizes = cluster_sums(shares, clusters)
    total, share = float(sizes.sum()), float(shares.mean())
    # The size of the cluster that a random item is in; as many clusters of that size weigh as these do.
    size = float((sizes**2).sum()) / total
    if (shares == shares[0]).all():
        return Effective(float(shares[0]), total / size, normal_quantile(level))
    # Right-or-wrong answers that are independent spread as their mean says: nothing is estimated.
    if size == 1.0 and ((shares == 0.0) | (shares == 1.0)).all():
        return Effective(share, total, normal_quantile(level))
    between = (1.0 - 1.0 / len(sums)) * float((jackknife_residuals(share, sums, sizes) ** 2).sum())
    most = total * share * (1.0 - share)
    # Values between the ends spread less than right and wrong do, and so does what is made up.
    made_up = MADE_UP * float(((shares - share) ** 2).sum()) / most
    effect = (between + made_up * size**2) / (most + made_up * size)
    return Effective(share, total / effect, student_quantile(level, max(1.0, total / size - 1.0)))


def wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's interval for a share of n right-or-wrong answers.

    >>> [round(end, 4) for end in wilson(0.8, 10, 1.96)]
    [0.4902, 0.9433]
    """
    square = quantile**2 / n
    middle = (share + square / 2.0) / (1.0 + square)
    half = math.sqrt(share * (1.0 - share) * square + square**2 / 4.0) / (1.0 + square)
    return max(0.0, middle - half), min(1.0, middle + half)


def cluster_sums(
    values: ArrayLike, clusters: Sequence[Hashable]
) -> tuple[Numbers, Numbers, NDArray[np.int64]]:
    """Return the values as an array, and each cluster's sum and number of values in order of appearance."""
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or len(numbers) == 0:
        raise ValueError("An interval needs a flat, non-empty list of values.")
    if not np.isfinite(numbers).all():
        raise ValueError("An interval needs finite values: leave out or score what is missing first.")
    index = cluster_codes(clusters, len(numbers))
    sums = np.bincount(index, weights=numbers).astype(np.float64)
    return numbers, sums, np.bincount(index).astype(np.int64)


def jackknife_residuals(value: float, sums: Numbers, weights: NDArray[np.number]) -> Numbers:
    """Return how far the ratio of sums moves, times their weight, as each cluster is left out."""
    return np.asarray((sums - value * weights) / (1.0 - weights / weights.sum()))


def _half_width(value: float, sums: Numbers, weights: NDArray[np.number], level: float) -> float | None:
    """Return Student's t times the jackknife's standard error; None where no cluster differs from the others."""
    total = float(weights.sum())
    residuals = jackknife_residuals(value, sums, weights)
    if float(np.abs(residuals).max()) <= _ROUNDING * float(np.abs(sums).max()):
        return None
    error = math.sqrt((1.0 - 1.0 / len(sums)) * float((residuals**2).sum())) / total
    # Clusters of unequal weight count as fewer.
    counted = total**2 / float((weights.astype(np.float64) ** 2).sum())
    return error * student_quantile(level, max(1.0, counted - 1.0))


def _around(value: float, half: float | None, bounds: Bounds, n: int, clusters: int) -> Interval:
    if half is None:
        return Interval(value, None, None, n, clusters)
    return Interval(value, max(value - half, bounds[0]), min(value + half, bounds[1]), n, clusters)


def _check(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"The level of an interval lies between 0 and 1, not {level}.")
