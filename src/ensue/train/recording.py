"""Work on a device that is recorded once for each shape and replayed from then on, without Python."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

log = logging.getLogger(__name__)

Work = Callable[[Any, Sequence[Tensor]], None]
Replay = Callable[[], None]
Record = Callable[[Replay], Replay]

# Recordings that are kept; shapes that come later are run plainly.
_MOST = 64


class Recorder:
    """Runs `work` plainly when inputs of a shape come first, records it the second time and replays it from then on.

    `work` takes a shape and tensors, and must do all it does by tensors that stay where they are: it is not called
    again when it is replayed. Where recording fails, everything goes on plainly, after `mend`.
    """

    def __init__(self, work: Work, record: Record, mend: Callable[[], None]) -> None:
        self._work, self._record, self._mend = work, record, mend
        self._seen: Counter[Hashable] = Counter()
        self._kept: dict[Hashable, tuple[list[Tensor], Replay]] = {}
        self._failed = False

    def __call__(self, shape: Hashable, inputs: Sequence[Tensor]) -> None:
        """Do the work on these inputs."""
        key = (shape, tuple((tuple(given.shape), given.dtype) for given in inputs))
        self._seen[key] += 1
        if key not in self._kept and not self._recorded(key, shape, inputs):
            self._work(shape, inputs)
            return
        held, replay = self._kept[key]
        for place, given in zip(held, inputs, strict=True):
            place.copy_(given)
        replay()

    def _recorded(self, key: Hashable, shape: Hashable, inputs: Sequence[Tensor]) -> bool:
        """Record the work for a shape that comes again; False where it is to be run plainly."""
        if self._failed or self._seen[key] < 2 or len(self._kept) >= _MOST:
            return False
        held = [given.clone() for given in inputs]
        try:
            self._kept[key] = held, self._record(lambda: self._work(shape, held))
        except Exception as error:  # of any kernel
            self._failed = True
            self._mend()
            said = (str(error).splitlines() or [type(error).__name__])[0][:200]
            log.warning("steps cannot be recorded (%s); going on one kernel at a time", said)
            return False
        return True


class CudaRecord:
    """Records work as a CUDA graph; all graphs of one share their memory, so nothing in it outlasts a replay."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Replay) -> Replay:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool):
                work()
        except Exception:
            _renew_generator()
            raise
        return graph.replay  # type: ignore[no-any-return]


def _renew_generator() -> None:
    """Give the GPU's random numbers a new state of the same seed: after a failed recording the old one refuses."""
    generator = torch.cuda.default_generators[torch.cuda.current_device()]
    fresh = torch.Generator(device=generator.device)
    fresh.manual_seed(generator.initial_seed())
    generator.graphsafe_set_state(fresh.graphsafe_get_state())
