"""Gradient descent: the one loop that everything trained here goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor


def descend(
    steps: Iterable[Iterable[Tensor]],
    optimiser: Any,
    *,
    clip: Callable[[], object],
    after: Callable[[list[Tensor]], bool],
    backward: Callable[[Tensor], object] = Tensor.backward,
) -> None:
    """Take an optimiser step on each group of losses, until there are no more groups or `after` returns True.

    The losses of a group are computed one at a time and their gradients added up; `clip` bounds the sum. `after` is
    called when a step is done, with its losses, and says whether to stop. Nothing waits for the device in between.
    """
    for losses in steps:
        found = []
        for loss in losses:
            backward(loss)
            found.append(loss.detach())
        clip()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if after(found):
            return
