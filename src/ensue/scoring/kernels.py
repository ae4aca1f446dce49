"""Which of torch's attention kernels are used: one set for all that runs or trains a network."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def without_cudnn(device: torch.device) -> AbstractContextManager[Any]:
    """Leave out cuDNN's attention on a GPU: it builds a plan for every new shape, seconds on a first pass."""
    if device.type != "cuda":
        return nullcontext()
    flash, efficient = SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION
    kernels: AbstractContextManager[Any] = sdpa_kernel([flash, efficient, SDPBackend.MATH])
    return kernels
