"""Runs packed rows on a GPU: whole prefix trees in one compiled pass each, or texts end to end without compiling."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator, Iterator, Sequence, Set
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.attention.flex_attention import BlockMask

from ensue.models.request import PartScore, TokenPart
from ensue.scoring.attention import attention, takes_varlen
from ensue.scoring.causal import NO_SHARING, CausalExecutor, Executor, Finished, out_of_memory
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.rows import BLOCK, Row, make_rows, seen_blocks
from ensue.scoring.tree import Node, build_tree

log = logging.getLogger(__name__)

# Seconds that a compiled pass saves on an H200 for each token, layer and unit of a layer's width (what is not written
# to memory between products: the same for 135 M and for 8 B parameters), and those that compiling takes.
_SAVED = 1e-10
_COMPILING = 8.0
# Uncompiled, texts are run end to end where sharing their prefixes would leave more than this of their tokens.
_LITTLE_SHARED = 0.7
# So many rows are padded to a larger size than they need before another is compiled, which takes as long as these.
_SMALL_ROWS = 64
# A row that is filled less than this waits for more, where more is to come.
_FULL = 0.95
# Nats a token by which a compiled row may differ from a plain pass: a wrong one differs by whole nats.
_TOLERANCE = 0.25


class PackedExecutor(Executor):
    """Scores rows of whole trees or texts on a GPU; what does not go so is done by the `plain` executor."""

    share = True

    def __init__(
        self, network: Network, budget: Budget, plain: CausalExecutor, *, compile: str = "auto"
    ) -> None:
        super().__init__(network, budget)
        self.plain, self.compile = plain, compile
        self._kept: TreeRunner | None = None
        self._trusted: set[type] = set()
        self._failed = False
        # What share of all parts these are, whether more come after them, and which are left to be run with those.
        self._share, self._more = 1.0, False
        self._held: set[TokenPart] = set()

    def run_more(
        self, parts: Sequence[TokenPart], done: Set[int], share: float, last: bool
    ) -> Generator[Finished, None, set[int]]:
        """Score parts that are such a share of all; return those left to be given again with more.

        So no row but the last of all has to be padded. Which are left depends on the parts alone, not on `done`.
        """
        alike = len({*self.network.lengths([len(part.ids) for part in parts])}) == 1
        self._share, self._more, self._held = share, alike and not last, set()
        try:
            yield from self.run(parts, done)
        finally:
            self._share, self._more = 1.0, False
        return {i for i, part in enumerate(parts) if part in self._held}

    def attempt(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        short = [i for i, part in enumerate(parts) if len(part.ids) <= self.budget.batch]
        finished = set(done)
        if short:
            names = {i: j for j, i in enumerate(short)}
            known = {names[i] for i in done if i in names}
            try:
                for batch in self._packed([parts[i] for i in short], known, length):
                    named = [(short[j], score) for j, score in batch]
                    finished.update(i for i, _ in named)
                    yield named
                finished.update(i for i in short if parts[i] in self._held)
            except Exception as error:  # of any compiler behind torch
                if out_of_memory(error):
                    raise
                self._failed, self._held = True, set()
                log.warning(
                    "packed rows cannot be run (%s); going on in batches", str(error).splitlines()[0][:200]
                )
        rest = [i for i in range(len(parts)) if i not in finished or i in done]
        if len(finished) < len(parts):
            self.plain.budget = self.budget
            known = {j for j, i in enumerate(rest) if i in done}
            for batch in self.plain.attempt([parts[i] for i in rest], known, length):
                yield [(rest[j], score) for j, score in batch]

    def _packed(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        """Score what goes in packed rows: all of the parts, or none."""
        nodes = build_tree(parts)
        runner = self._runner(nodes, parts)
        if runner is None:
            return
        if not runner.shares:
            nodes = build_tree(parts, min_run=NO_SHARING)
        waiting: Launched | None = None
        for row, last in _with_last(make_rows(nodes, [part.start for part in parts], self.budget.batch)):
            if last and self._more and len(row.ids) < _FULL * self.budget.batch:
                self._held = {parts[i] for i in row.of}
                break
            if row.of.keys() <= done:
                continue
            # Read one row late: the host lays the next while the GPU works.
            launched = runner.launch(row, length)
            if type(runner) not in self._trusted:
                self._check(launched, parts, length)
                self._trusted.add(type(runner))
            if waiting is not None:
                yield [one for one in waiting.scores() if one[0] not in done]
            waiting = launched
        if waiting is not None:
            yield [one for one in waiting.scores() if one[0] not in done]

    def _runner(self, nodes: Sequence[Node], parts: Sequence[TokenPart]) -> Runner | None:
        """Choose how rows are run: compiled where it is repaid, else by the tokens that sharing saves."""
        if self._failed:
            return None
        fed, given = sum(node.length for node in nodes), sum(len(part.ids) for part in parts)
        width = self.network.model.get_input_embeddings().weight.shape[1]
        saved = _SAVED * fed / self._share * len(_stack(self.network.trunk)) * width
        if self.compile == "always" or (self.compile == "auto" and saved > _COMPILING):
            return self._trees()
        if takes_varlen(self.network) and fed > _LITTLE_SHARED * given:
            return TextRunner(self.network)
        return None

    def _trees(self) -> TreeRunner:
        """Return what runs trees; one is kept as long as the budget is."""
        if self._kept is None or self._kept.room != self.budget.batch:
            self._kept = TreeRunner(self.network, self.budget.batch)
        return self._kept

    def _check(self, launched: Launched, parts: Sequence[TokenPart], length: int | None) -> None:
        """Compare the shortest parts of a first row with a plain pass: what is compiled may be wrong here alone."""
        found = dict(launched.scores())
        some = sorted(found, key=lambda i: len(parts[i].ids))[:4]
        for batch in self.plain.attempt([parts[i] for i in some], frozenset(), length):
            for j, expected in batch:
                gap = np.abs(found[some[j]].logprobs - expected.logprobs).mean()
                if not gap <= _TOLERANCE and np.isfinite(expected.logprobs).all():
                    raise RuntimeError(f"their scores are {gap:.3g} nats a token away from the plain ones")


def _with_last(rows: Iterator[Row]) -> Iterator[tuple[Row, bool]]:
    """Yield each row, and whether it is the last."""
    row = next(rows, None)
    while row is not None:
        following = next(rows, None)
        yield row, following is None
        row = following


class Launched(NamedTuple):
    """A row under way: what comes out of it, and the event after which it is there."""

    row: Row
    found: torch.Tensor
    there: Any

    def scores(self) -> Finished:
        """Wait for the row, and return the scores of its parts."""
        if self.there is not None:
            self.there.synchronize()
        found = self.found.numpy().astype(np.float64)
        return [
            (part, PartScore(np.concatenate([found[begin:end] for begin, end in pieces])))
            for part, pieces in self.row.of.items()
        ]


class Runner(Protocol):
    """Runs a row; `shares` says whether rows may hold trees."""

    shares: bool

    def launch(self, row: Row, length: int | None) -> Launched: ...


def _fetch(row: Row, found: torch.Tensor) -> Launched:
    """Begin to copy results to the host."""
    if found.device.type != "cuda":
        return Launched(row, found, None)
    there = torch.cuda.Event()
    held = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
    held.copy_(found, non_blocking=True)
    there.record()
    return Launched(row, held, there)


def _sent(values: npt.NDArray[np.int32], device: torch.device) -> torch.Tensor:
    """Send numbers to the device without waiting for it."""
    tensor = torch.from_numpy(np.ascontiguousarray(values))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class TreeRunner:
    """Runs rows of trees with FlexAttention, each padded to one of a few sizes for which layers are compiled once."""

    shares = True
    # Rows are padded to one of these shares of the room.
    _SHARES = (16, 4, 1)
    # States that the compiled head takes at a time.
    _HEAD_ROWS = 4096

    def __init__(self, network: Network, room: int, *, compiled: bool = True) -> None:
        self.network, self.room = network, room
        self.compiled = compiled and network.device.type == "cuda"
        self._places: dict[int, _Place] = {}
        self._small = 0
        self._stack = _stack(network.trunk)
        self._calls: list[Any] = []

    def launch(self, row: Row, length: int | None) -> Launched:
        place = self._place(len(row.ids))
        place.lay(row)
        with torch.inference_mode(), attention(self.network.model), self._layers(), _unwarned(self.compiled):
            hidden = self.network.hidden(
                place.ids[None], attention_mask=place.mask, position_ids=place.positions[None], length=length
            )[0]
            return _fetch(row, self._read(hidden, row))

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
            self._places[size] = _Place(size, self.network.device)
        return self._places[size]

    def _read(self, hidden: torch.Tensor, row: Row) -> torch.Tensor:
        head = self.network.plain_head
        states, targets = _sent(row.states, self.network.device), _sent(row.targets, self.network.device)
        if head is None or not self.compiled:
            return self.network.chosen(hidden.index_select(0, states), targets)
        found = hidden.new_empty(len(targets), dtype=torch.float32)
        for begin in range(0, len(targets), self._HEAD_ROWS):
            end = min(begin + self._HEAD_ROWS, len(targets))
            more = self._HEAD_ROWS - (end - begin)
            asked = [torch.nn.functional.pad(one[begin:end], (0, more)) for one in (states, targets)]
            found[begin:end] = _compiled_head()(hidden, head.weight, head.bias, *asked)[: end - begin]
        return found

    @contextmanager
    def _layers(self) -> Iterator[None]:
        """Run the compiled form of each layer: all have one code, which is compiled once a size."""
        if not self.compiled:
            yield
            return
        for layer, call in zip(self._stack, self._compiled_calls(), strict=True):
            layer._compiled_call_impl = call
        try:
            yield
        finally:
            for layer in self._stack:
                layer._compiled_call_impl = None

    def _compiled_calls(self) -> list[Any]:
        if not self._calls:
            self._calls = [torch.compile(layer._call_impl, dynamic=False) for layer in self._stack]
        return self._calls


@contextmanager
def _unwarned(compiled: bool) -> Iterator[None]:
    """Keep quiet about attention that is not compiled on purpose."""
    with warnings.catch_warnings():
        if not compiled:
            warnings.filterwarnings("ignore", message="flex_attention called without")
        yield


class _Place:
    """Where rows of one size are laid on the device: always the same memory, so that nothing is compiled anew."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.size = size
        count = size // BLOCK
        lengths = (size, size, size, count, count * count, count, count * count)
        self._held = torch.zeros(sum(lengths), dtype=torch.int32, device=device)
        self.ids, self.positions, self.ends, *blocks = self._held.split(lengths)
        # A buffer may be written while the last copy out of the other is still under way.
        is_cuda = device.type == "cuda"
        sending = [torch.zeros(len(self._held), dtype=torch.int32, pin_memory=is_cuda) for _ in range(2)]
        self._sending = [(one, [piece.numpy() for piece in one.split(lengths)]) for one in sending]
        ends = self.ends

        def sees(batch: Any, head: Any, query: Any, key: Any) -> Any:
            return (key <= query) & (query < ends[key])

        some_count, some, all_count, all_ = blocks
        self.mask = BlockMask.from_kv_blocks(
            some_count.view(1, 1, count),
            some.view(1, 1, count, count),
            all_count.view(1, 1, count),
            all_.view(1, 1, count, count),
            BLOCK_SIZE=BLOCK,
            mask_mod=sees,
            seq_lengths=(size, size),
            compute_q_blocks=False,
        )
        # transformers hands on what has four dimensions as it is; some of its models ask for them by this name.
        self.mask.ndim = 4

    def lay(self, row: Row) -> None:
        """Copy a row here, after whatever the device still has to do with the last one."""
        padded = row.padded(self.size)
        self._sending.reverse()
        held, (ids, positions, ends, *tables) = self._sending[0]
        ids[:], positions[:], ends[:] = padded.ids, padded.positions, padded.ends
        for blocks, counts, listed in zip(seen_blocks(padded.ends), tables[::2], tables[1::2], strict=True):
            counts[:] = blocks.counts
            # What an earlier row listed beyond its own count is not looked at.
            listed.reshape(len(counts), -1)[blocks.queries, blocks.places] = blocks.keys
        self._held.copy_(held, non_blocking=True)


class TextRunner:
    """Runs texts end to end, none of which sees another, by torch's attention over texts of different lengths."""

    shares = False

    def __init__(self, network: Network) -> None:
        self.network = network

    def launch(self, row: Row, length: int | None) -> Launched:
        device = self.network.device
        begins = np.append(np.flatnonzero(row.positions == 0), len(row.ids)).astype(np.int32)
        longest = int(np.diff(begins).max())
        borders = _sent(begins, device)
        lengths = {"cu_seq_lens_q": borders, "cu_seq_lens_k": borders}
        lengths |= {"max_length_q": longest, "max_length_k": longest}
        with torch.inference_mode(), attention(self.network.model):
            hidden = self.network.hidden(
                _sent(row.ids, device)[None],
                # Not looked at, but with four dimensions no other is made.
                attention_mask=self._no_mask,
                position_ids=_sent(row.positions, device)[None],
                length=length,
                **lengths,
            )[0]
            states = hidden.index_select(0, _sent(row.states, device))
            return _fetch(row, self.network.chosen(states, _sent(row.targets, device)))

    @cached_property
    def _no_mask(self) -> torch.Tensor:
        return torch.zeros((1, 1, 1, 1), device=self.network.device)


def _stack(trunk: torch.nn.Module) -> list[torch.nn.Module]:
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
