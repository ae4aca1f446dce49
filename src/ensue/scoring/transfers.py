"""Numbers on their way to a device and back, for which nobody waits before they are needed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch


def send(values: npt.NDArray[Any], device: torch.device) -> torch.Tensor:
    """Send numbers to a device without waiting for it."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class Arriving(NamedTuple):
    """A tensor on its way to the host, and the event after which it is there."""

    held: torch.Tensor
    there: Any

    def numpy(self) -> npt.NDArray[Any]:
        """Wait until it is there, and return it."""
        if self.there is not None:
            self.there.synchronize()
        found: npt.NDArray[Any] = self.held.numpy()
        return found


def fetch(found: torch.Tensor) -> Arriving:
    """Begin to copy a tensor to the host."""
    if found.device.type != "cuda":
        return Arriving(found, None)
    there = torch.cuda.Event()
    held = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
    held.copy_(found, non_blocking=True)
    there.record()
    return Arriving(held, there)
