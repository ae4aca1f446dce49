"""Batches of examples of like length, so that little of them is padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def alike(order: Sequence[Any], length: Callable[[Any], int], size: int, pooled: int) -> list[list[Any]]:
    """Return batches of `size`, sorted by length within pools of `pooled` batches so that they stay mixed.

    >>> alike([5, 1, 4, 2, 3], lambda number: number, 2, 2)
    [[1, 2], [4, 5], [3]]
    """
    step = size * pooled
    pools = (sorted(order[begin : begin + step], key=length) for begin in range(0, len(order), step))
    return [pool[begin : begin + size] for pool in pools for begin in range(0, len(pool), size)]
