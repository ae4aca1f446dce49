"""Does one metric correlate better with people than another on the same items: paired bootstrap, Williams' test."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.correlation import percentile_interval
from ensue.stats.student import two_sided_t


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
    """The difference of two correlations whose draws were made of the same samples of so many units, round by round.

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
    """Williams' test (1959) of two correlations with one variable, which correlate with each other at `r_ab`.

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
