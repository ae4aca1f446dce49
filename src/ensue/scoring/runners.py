"""Run one packed row on a GPU: a tree in a compiled, recorded pass, or texts end to end without compiling."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.attention.flex_attention import BlockMask

from ensue.models.request import PartScore
from ensue.scoring.attention import attention
from ensue.scoring.causal import Finished, out_of_memory
from ensue.scoring.merged import MergedProjections, OnlyOnce
from ensue.scoring.network import Network
from ensue.scoring.rows import BLOCK, Row, seen_blocks
from ensue.scoring.transfers import Arriving, fetch, send

log = logging.getLogger(__name__)

# Rows that the device is given before the first of them is waited for.
IN_FLIGHT = 2
# So many rows are padded to a larger size than they need before another is compiled, which takes as long as these.
_SMALL_ROWS = 64


class Launched(NamedTuple):
    """A row under way, and what comes out of it."""

    row: Row
    found: Arriving

    def scores(self) -> Finished:
        """Wait for the row, and return the scores of its parts."""
        found = self.found.numpy().astype(np.float64)
        return [(part, PartScore(own)) for part, own in self.row.pieces.of(found)]


class Runner(Protocol):
    """Runs a row; `shares` says whether rows may hold trees."""

    shares: bool

    def launch(self, row: Row, length: int | None) -> Launched: ...


class TreeRunner:
    """Runs rows of trees with FlexAttention, each padded to one of a few sizes for which layers are compiled once."""

    shares = True
    # Rows are padded to one of these shares of the room.
    _SHARES = (16, 4, 1)

    def __init__(self, network: Network, room: int, *, compiled: bool = True) -> None:
        self.network, self.room = network, room
        self.compiled = compiled and network.device.type == "cuda"
        self._places: dict[int, _Place] = {}
        self._small = 0
        self._states, self._targets = _Sender(network.device), _Sender(network.device)
        self._stack = layers_of(network.trunk)
        self._windows = network.windows or {"": None}

    def launch(self, row: Row, length: int | None) -> Launched:
        place = self._place(len(row.ids))
        place.lay(row)
        with torch.inference_mode(), attention(self.network.model), self._layers(), _unwarned(self.compiled):
            hidden = self._hidden(place, length)
            return Launched(row, fetch(self._read(hidden, row)))

    def _hidden(self, place: _Place, length: int | None) -> torch.Tensor:
        """Run a row, by replaying what was recorded on its place: a call of every layer takes the host too long."""
        if not self.compiled or length is not None or place.unrecordable:
            return self._run(place, length)
        if place.recorded is None:
            self._run(place, length)  # compiles
            place.recorded = _record(lambda: self._run(place, None))
            if place.recorded is None:
                place.unrecordable = True
                return self._run(place, length)
        graph, hidden = place.recorded
        graph.replay()
        return hidden

    def _run(self, place: _Place, length: int | None) -> torch.Tensor:
        return self.network.hidden(
            place.ids[None],
            attention_mask=place.mask,
            position_ids=place.positions[None],
            length=length,
            **place.told,
        )[0]

    def _place(self, tokens: int) -> _Place:
        """Return where a row is laid: on the smallest size that is compiled, unless rows are often far smaller."""
        sizes = [-(-self.room // (share * BLOCK)) * BLOCK for share in self._SHARES]
        size = next((size for size in sizes if size >= tokens), -(-tokens // BLOCK) * BLOCK)
        compiled = min((known for known in self._places if known >= size), default=size)
        if compiled > size:
            self._small += 1
            if self._small <= _SMALL_ROWS:
                size = compiled
        if size not in self._places:
            self._places[size] = _Place(size, self.network.device, self._windows)
        return self._places[size]

    def _read(self, hidden: torch.Tensor, row: Row) -> torch.Tensor:
        head, count = self.network.plain_head, len(row.targets)
        states, targets = self._states.send(row.states), self._targets.send(row.targets)
        if head is None or not self.compiled:
            return self.network.chosen(hidden.index_select(0, states[:count]), targets[:count])
        found = hidden.new_empty(len(targets), dtype=torch.float32)
        for begin in range(0, count, _Sender.STEP):
            chunk = slice(begin, begin + _Sender.STEP)
            found[chunk] = _compiled_head()(hidden, head.weight, head.bias, states[chunk], targets[chunk])
        return found[:count]

    @contextmanager
    def _layers(self) -> Iterator[None]:
        """Run the compiled form of each layer: all have one code, which is compiled once a size."""
        if not self.compiled:
            yield
            return
        for layer, call in zip(self._stack, self._compiled_calls, strict=True):
            layer._compiled_call_impl = call
        try:
            with self._merged():
                yield
        finally:
            for layer in self._stack:
                layer._compiled_call_impl = None

    @cached_property
    def _compiled_calls(self) -> list[Any]:
        options: Any = {"joint_custom_pre_pass": OnlyOnce()}
        return [torch.compile(layer._call_impl, dynamic=False, options=options) for layer in self._stack]

    @cached_property
    def _merged(self) -> MergedProjections:
        return MergedProjections(self._stack)


@contextmanager
def _unwarned(compiled: bool) -> Iterator[None]:
    """Keep quiet about attention that is not compiled on purpose."""
    with warnings.catch_warnings():
        if not compiled:
            warnings.filterwarnings("ignore", message="flex_attention called without")
        yield


class _Place:
    """Where rows of one size are laid on the device: always the same memory, so that nothing is compiled anew.

    `mask` says what a token sees: one for all layers, or one for each kind of them where these look back differently
    far; `told` is for the attention.
    """

    def __init__(self, size: int, device: torch.device, windows: Mapping[str, int | None]) -> None:
        self.size = size
        # The recorded pass over a row and where it leaves its states; whether it cannot be recorded.
        self.recorded: tuple[Any, torch.Tensor] | None = None
        self.unrecordable = False
        count = size // BLOCK
        self._windows = list(dict.fromkeys(windows.values()))
        tables = (count, count * count, count, count * count)
        lengths = (size, size, size, *(tables * len(self._windows)))
        self._held = torch.zeros(sum(lengths), dtype=torch.int32, device=device)
        self.ids, self.positions, self.ends, *blocks = self._held.split(lengths)
        # One is written while the copies out of the others may still be under way.
        is_cuda = device.type == "cuda"
        size_held = len(self._held)
        sending = [
            torch.zeros(size_held, dtype=torch.int32, pin_memory=is_cuda) for _ in range(IN_FLIGHT + 1)
        ]
        self._sending = [(one, [piece.numpy() for piece in one.split(lengths)]) for one in sending]
        masks = {window: self._seen(window, blocks[4 * n :]) for n, window in enumerate(self._windows)}
        several = {kind: masks[window] for kind, window in windows.items()}
        self.mask: Any = several if len(masks) > 1 else masks[self._windows[0]]
        self.told = {} if self._windows == [None] else {"row_windows": tuple(self._windows)}

    def _seen(self, window: int | None, blocks: Sequence[torch.Tensor]) -> BlockMask:
        """Return the mask of layers that look back so far, over the tables of what blocks see."""
        ends, positions, count = self.ends, self.positions, self.size // BLOCK

        def sees(batch: Any, head: Any, query: Any, key: Any) -> Any:
            return (key <= query) & (query < ends[key])

        def sees_near(batch: Any, head: Any, query: Any, key: Any) -> Any:
            return (key <= query) & (query < ends[key]) & (positions[query] - positions[key] < window)

        some_count, some, all_count, all_ = blocks[:4]
        mask = BlockMask.from_kv_blocks(
            some_count.view(1, 1, count),
            some.view(1, 1, count, count),
            all_count.view(1, 1, count),
            all_.view(1, 1, count, count),
            BLOCK_SIZE=BLOCK,
            mask_mod=sees if window is None else sees_near,
            seq_lengths=(self.size, self.size),
            compute_q_blocks=False,
        )
        # transformers hands on what has four dimensions as it is; some of its models ask for them by this name.
        mask.ndim = 4
        return mask

    def lay(self, row: Row) -> None:
        """Copy a row here, after whatever the device still has to do with the last one."""
        padded = row.padded(self.size)
        self._sending.append(self._sending.pop(0))
        held, (ids, positions, ends, *tables) = self._sending[0]
        ids[:], positions[:], ends[:] = padded.ids, padded.positions, padded.ends
        for number, window in enumerate(self._windows):
            found = seen_blocks(padded.ends, positions=padded.positions, window=window)
            own = tables[4 * number : 4 * number + 4]
            for blocks, counts, listed in zip(found, own[::2], own[1::2], strict=True):
                counts[:] = blocks.counts
                # What an earlier row listed beyond its own count is not looked at.
                listed.reshape(len(counts), -1)[blocks.queries, blocks.places] = blocks.keys
        self._held.copy_(held, non_blocking=True)


class _Sender:
    """Sends numbers to the device through memory that is pinned once; what is beyond them is some earlier numbers.

    What it returns is a whole number of steps long, those of the compiled head.
    """

    STEP = 4096

    def __init__(self, device: torch.device) -> None:
        self._there = torch.zeros(0, dtype=torch.int32, device=device)
        # One is written while the copies out of the others may still be under way.
        self._here: list[torch.Tensor] = []

    def send(self, values: npt.NDArray[np.int32]) -> torch.Tensor:
        steps = -(-len(values) // self.STEP)
        if len(self._there) < steps * self.STEP:
            size = 2 * steps * self.STEP
            self._there = torch.zeros(size, dtype=torch.int32, device=self._there.device)
            is_cuda = self._there.device.type == "cuda"
            self._here = [
                torch.zeros(size, dtype=torch.int32, pin_memory=is_cuda) for _ in range(IN_FLIGHT + 1)
            ]
        self._here.append(self._here.pop(0))
        if steps:
            self._here[0].numpy()[: len(values)] = values
        there = self._there[: steps * self.STEP]
        there[: len(values)].copy_(self._here[0][: len(values)] if steps else there[:0], non_blocking=True)
        return there


def _record(work: Callable[[], torch.Tensor]) -> tuple[Any, torch.Tensor] | None:
    """Record what the device does in some work, to be replayed on the same memory; None where that cannot be."""
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            states = work()
    except RuntimeError as error:
        if out_of_memory(error):
            raise
        log.debug("rows are not recorded: %s", error)
        return None
    return graph, states


class TextRunner:
    """Runs texts end to end, none of which sees another, by torch's attention over texts of different lengths."""

    shares = False

    def __init__(self, network: Network) -> None:
        self.network = network

    def launch(self, row: Row, length: int | None) -> Launched:
        device = self.network.device
        begins = np.append(np.flatnonzero(row.positions == 0), len(row.ids)).astype(np.int32)
        longest = int(np.diff(begins).max())
        borders = send(begins, device)
        lengths = {"cu_seq_lens_q": borders, "cu_seq_lens_k": borders}
        lengths |= {"max_length_q": longest, "max_length_k": longest}
        with torch.inference_mode(), attention(self.network.model):
            hidden = self.network.hidden(
                send(row.ids, device)[None],
                # Not looked at, but with four dimensions no other is made.
                attention_mask=self._no_mask,
                position_ids=send(row.positions, device)[None],
                length=length,
                **lengths,
            )[0]
            states = hidden.index_select(0, send(row.states, device))
            return Launched(row, fetch(self.network.chosen(states, send(row.targets, device))))

    @cached_property
    def _no_mask(self) -> torch.Tensor:
        return torch.zeros((1, 1, 1, 1), device=self.network.device)


def layers_of(trunk: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the layers of a trunk: the longest list of modules in it."""
    lists = [list(module) for module in trunk.modules() if isinstance(module, torch.nn.ModuleList)]
    return max(lists, key=len, default=[])


def _head(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    states: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    logits = torch.nn.functional.linear(hidden.index_select(0, states), weight, bias).float()
    return logits.gather(1, targets[:, None].long())[:, 0] - torch.logsumexp(logits, 1)


@cache
def _compiled_head() -> Any:
    """Return projection, log-sum-exp and choice in one."""
    return torch.compile(_head, dynamic=False)
