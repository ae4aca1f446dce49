"""Student's t and the normal distribution; scipy has them, and is imported when first asked."""

from __future__ import annotations

import math
from statistics import NormalDist


def two_sided_t(t: float, df: float) -> float:
    """Return the chance that Student's t is at least as far from zero.

    >>> round(two_sided_t(2.0, 10), 10)
    0.0733880348
    """
    from scipy.special import stdtr

    if df < 1:
        raise ValueError(f"Student's t needs at least one degree of freedom, not {df}.")
    return 2.0 * float(stdtr(df, -abs(t)))


def student_quantile(level: float, df: float) -> float:
    """Return how far from zero Student's t lies with that chance at most.

    >>> round(student_quantile(0.95, 4), 3)
    2.776
    """
    from scipy.special import stdtrit

    return float(stdtrit(df, (1.0 + level) / 2.0))


def normal_quantile(level: float) -> float:
    """Return how far from zero a standard normal number lies with that chance at most.

    >>> round(normal_quantile(0.95), 3)
    1.96
    """
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


def widened_tail(level: float, units: int) -> float:
    """Return the share of bootstrap draws to leave out at either end, so that few units give a wide enough interval.

    Draws spread by a factor sqrt((n - 1) / n) too little, and their quantiles are those of a normal where Student's
    t belongs (Hesterberg 2015, "What teachers should know about the bootstrap").

    >>> round(widened_tail(0.95, 1_000_000), 4), round(widened_tail(0.95, 10), 4)
    (0.025, 0.0086)
    """
    from scipy.special import ndtr

    return float(ndtr(-math.sqrt(units / (units - 1)) * student_quantile(level, units - 1)))
