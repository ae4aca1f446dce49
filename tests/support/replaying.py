"""A CUDA graph's stand-in on a CPU: kernels are noted as they run, and run again on the same memory by a replay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# What a host learns from a device by waiting for it, which a GPU refuses while it records.
_WAITS = ("aten._local_scalar_dense", "aten.nonzero", "aten.equal", "aten.is_nonzero", "aten.masked_select")


class _Noted(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if str(func).startswith(_WAITS):
            raise RuntimeError(f"{func} is not permitted when a stream is capturing")
        found = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, found))
        return found


class ReplayedKernels:
    """Records work as CUDA does: what it changed is undone, and Python has no part in a replay.

    `memory` names the tensors that work may change; what is not undone by it would show as a step taken twice.
    """

    def __init__(self, memory: Callable[[], list[torch.Tensor]]) -> None:
        self.memory = memory
        self.recorded = self.replayed = 0

    def __call__(self, work: Callable[[], None]) -> Callable[[], None]:
        kept = [(place, place.detach().clone()) for place in self.memory()]
        random = torch.get_rng_state()
        # Libraries ask this before they look at numbers.
        with patch("torch.cuda.is_current_stream_capturing", return_value=True), _Noted() as noted:
            work()
        torch.set_rng_state(random)
        with torch.no_grad():
            for place, value in kept:
                place.copy_(value)
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            with torch.no_grad():
                for func, args, kwargs, found in noted.calls:
                    again = func(*args, **kwargs)
                    for old, new in zip(tree_leaves(found), tree_leaves(again), strict=True):
                        if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                            old.copy_(new)

        return replay
