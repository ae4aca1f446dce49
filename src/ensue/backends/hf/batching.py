"""Which texts are run together, and how rows of different lengths become one batch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

# The part of a batch that may be padding, and the part of the budget below which a batch may have more of it.
_PADDING, _SMALL = 1 / 16, 1 / 8


def like_long(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Choose which texts are read together, the longest first: within the budget of tokens, with little padding."""
    chosen: list[int] = []
    width = tokens = 0
    for i in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        room = (len(chosen) + 1) * width
        padding = room - tokens - lengths[i]
        if chosen and (room > budget or (padding > room * _PADDING and room > budget * _SMALL)):
            yield chosen
            chosen, tokens = [], 0
        if not chosen:
            width = max(lengths[i], 1)
        chosen.append(i)
        tokens += lengths[i]
    yield chosen


def continued_together(
    lengths: Sequence[int], new: int, room: int, *, rows: float = math.inf, border: float = math.inf
) -> Iterator[list[int]]:
    """Choose which prompts are continued together, the longest first: what does not fit memory shows at once.

    One that may go beyond the border, where positions are those of the longest of a batch, is continued alone.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        longest = lengths[batch[0]] + new if batch else 0
        if batch and (len(batch) == rows or (len(batch) + 1) * longest > room or longest > border):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad(rows: Sequence[Sequence[int]], fill: int, *, left: bool = False) -> tuple[Any, Any]:
    """Return rows of tokens as one tensor, padded on the right or left, and the mask that hides the padding."""
    import torch

    def joined(row: list[int], gap: list[int]) -> list[int]:
        return gap + row if left else row + gap

    width = max(*map(len, rows), 1)
    ids = [joined(list(row), [fill] * (width - len(row))) for row in rows]
    mask = [joined([1] * len(row), [0] * (width - len(row))) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)
