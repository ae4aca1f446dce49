"""Corrections for asking several questions of the same data."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given.

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
