"""Runs a plan on a left-to-right model: every shared prefix once, the head only where a token is scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ensue.models.request import PartScore, TokenPart
from ensue.scoring.network import BranchCache, Network, Pool, Slots
from ensue.scoring.plan import Budget, Step, cache_peak, make_plan, needed_steps
from ensue.scoring.shares import Piece, TreeShare, divide_plan
from ensue.scoring.tree import (
    LONG_ROW,
    ROW,
    Node,
    build_tree,
    kept_tokens,
    lay_branches,
    merge_spines,
    pack_leaves,
    split_long,
)

Finished = list[tuple[int, PartScore]]
Array = npt.NDArray[np.float64]

NO_SHARING = 2**31
# A share of the work has so many batches or more: a worker is busy long enough with it to be worth the way.
_SHARE = 4


class Executor(ABC):
    """Scores token parts with one network under a token budget; a subclass says how."""

    def __init__(self, network: Network, budget: Budget) -> None:
        self.network = network
        self.budget = budget

    @abstractmethod
    def attempt(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        """Score the parts not in `done`, a batch at a time; `length` stands for all of theirs (`Network.lengths`)."""

    def run(self, parts: Sequence[TokenPart], done: Set[int] = frozenset()) -> Iterator[Finished]:
        """Score the parts not in `done`, a batch at a time. Out of memory halves the budget and goes on."""
        for length, places in self._groups(parts).items():
            known = {j for j, place in enumerate(places) if place in done}
            for batch in self._run_group([parts[place] for place in places], known, length):
                named = [(places[j], score) for j, score in batch]
                yield [(place, self._sure(parts[place], score, length)) for place, score in named]

    def divide(self, parts: Sequence[TokenPart], done: Set[int] = frozenset()) -> Iterator[Any]:
        """Yield shares of what `run` would do, which need nothing of each other."""
        for length, places in self._groups(parts).items():
            yield from self.divide_group({place: parts[place] for place in places}, done, length)

    @abstractmethod
    def divide_group(
        self, parts: Mapping[int, TokenPart], done: Set[int], length: int | None
    ) -> Iterator[Any]:
        """Divide parts whose lengths may be run together."""

    @abstractmethod
    def work(self, share: Any) -> Iterator[list[Piece]]:
        """Do a share, a batch at a time."""

    def _groups(self, parts: Sequence[TokenPart]) -> dict[int | None, list[int]]:
        """Return the places of parts that may be run together, by what stands for their lengths."""
        groups: dict[int | None, list[int]] = {}
        for place, length in enumerate(self.network.lengths([len(part.ids) for part in parts])):
            groups.setdefault(length, []).append(place)
        return groups

    def _sure(self, part: TokenPart, score: PartScore, length: int | None) -> PartScore:
        """Score a part again alone where it got no number: what is none spreads to all that share its row."""
        if np.isfinite(score.logprobs).all():
            return score
        alone = CausalExecutor(self.network, self.budget, share=False)
        ((_, found),) = next(alone.attempt([part], frozenset(), length))
        return found

    def _run_group(
        self, parts: Sequence[TokenPart], done: Set[int], length: int | None
    ) -> Iterator[Finished]:
        """Score parts whose lengths may be run together."""
        finished = set(done)
        offset = list(range(len(parts)))
        while True:
            try:
                known = {j for j, i in enumerate(offset) if i in finished}
                for batch in self.attempt([parts[i] for i in offset], known, length):
                    named = [(offset[j], score) for j, score in batch]
                    finished.update(i for i, _ in named)
                    yield named
                return
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
            self.budget = self.budget.halved()
            offset = [i for i in offset if i not in finished]
            if self.network.device.type == "cuda":
                torch.cuda.empty_cache()


class CausalExecutor(Executor):
    """Scores level by level with a cache of shared runs: the way on a CPU, and for any model.

    `share` says whether prefixes are branched from, `pack` whether short continuations lie side by side in a row.
    """

    def __init__(self, network: Network, budget: Budget, *, share: bool = True, pack: bool = False) -> None:
        super().__init__(network, budget)
        self.share = share
        self.pack = pack and network.sees_by_mask

    def attempt(self, parts: Sequence[TokenPart], done: Set[int], length: int | None) -> Iterator[Finished]:
        nodes, steps = self._plan(parts)
        needed = needed_steps(nodes, steps, done)
        wanted = {place: part for place, part in enumerate(parts) if place not in done}
        yield from self._walk(
            nodes, zip(steps, needed, strict=True), cache_peak(nodes, steps), wanted, length
        )

    def divide_group(
        self, parts: Mapping[int, TokenPart], done: Set[int], length: int | None
    ) -> Iterator[TreeShare]:
        places = list(parts)
        known = {j for j, place in enumerate(places) if place in done}
        own = list(parts.values())
        nodes, steps = self._plan(own)
        for share in divide_plan(nodes, steps, own, known, length, _SHARE * self.budget.batch):
            yield share if places[-1] == len(places) - 1 else share.of_places(places)

    def work(self, share: TreeShare) -> Iterator[list[Piece]]:
        left = dict(share.parts)
        try:
            steps = [(step, True) for step in share.steps]
            peak = cache_peak(share.nodes, share.steps)
            for batch in self._walk(share.nodes, steps, peak, share.parts, share.length):
                found = [(place, self._sure(left.pop(place), score, share.length)) for place, score in batch]
                yield [Piece(place, score) for place, score in found]
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
        if left:
            # For this share alone: the next one was planned with the whole budget and may fit.
            smaller = CausalExecutor(self.network, self.budget.halved(), share=self.share, pack=self.pack)
            places = list(left)
            for batch in smaller.run(list(left.values())):
                yield [Piece(places[j], score) for j, score in batch]

    def _plan(self, parts: Sequence[TokenPart]) -> tuple[list[Node], list[Step]]:
        """Return the nodes of parts, and the steps that run them."""
        if self.share:
            runs = split_long(build_tree(parts), self.budget.longest_run)
            rows = pack_leaves(runs, parts, branch=self.pack, row=min(ROW, self.budget.batch))
            nodes = merge_spines(rows, self.budget.longest_run)
            if self.pack:
                nodes = lay_branches(nodes, parts, min(LONG_ROW, self.budget.batch))
        else:
            nodes = build_tree(parts, min_run=NO_SHARING)
        return nodes, make_plan(nodes, self.budget)

    def _walk(
        self,
        nodes: Sequence[Node],
        steps: Iterable[tuple[Step, bool]],
        peak: int,
        parts: Mapping[int, TokenPart],
        length: int | None,
    ) -> Iterator[Finished]:
        """Run the steps that are needed, and yield the scores of the parts that end in them."""
        pass_ = _Pass(self.network, nodes, Pool(peak), length, share=self.share)
        for step, wanted in steps:
            if not wanted:
                pass_.release(step)
                continue
            pass_.step(step)
            batch = [
                (part, PartScore(pass_.collect(index, part, parts[part])))
                for index in step.nodes
                for part in nodes[index].ends
                if part in parts
            ]
            pass_.release(step)
            if batch:
                yield batch


class _Pass:
    """One walk over a plan: which nodes are cached where, and the log-probabilities found so far."""

    def __init__(
        self, network: Network, nodes: Sequence[Node], pool: Pool, length: int | None, *, share: bool
    ) -> None:
        self.network, self.nodes, self.pool, self.share = network, nodes, pool, share
        self.length = length
        self.paths: dict[int, Slots] = {}
        # The states that others go on from, by run and by the position after them.
        self.last_hidden: dict[int, dict[int, torch.Tensor]] = {}
        self.logprobs: dict[int, Array] = {}

    def step(self, step: Step) -> None:
        """Run one batch of nodes."""
        with torch.inference_mode():
            batch = [self.nodes[i] for i in step.nodes]
            if not any(node.length for node in batch):
                # Each asks only for one token after its parent, so nothing is run.
                above = self._above(batch[0], batch[0].begin)
                hidden = above.new_empty((len(batch), 1, len(above)))
            else:
                hidden = self._forward(batch)
            width = hidden.shape[1]
            flat = hidden.flatten(0, 1)
            self._score(batch, flat, width)
            for row, node in enumerate(batch):
                first = row * width - node.begin - 1
                begins = {begin for child in node.children for begin in self.nodes[child].all_begins}
                if begins:
                    self.last_hidden[node.index] = {begin: flat[first + begin].clone() for begin in begins}

    def _above(self, node: Node, begin: int) -> torch.Tensor:
        """Return the state that a run, or a part of a row, goes on from."""
        assert node.parent is not None  # the first token of a text is never scored
        return self.last_hidden[node.parent][begin]

    def _path(self, node: Node) -> Slots:
        """Return the slots of all tokens before a run."""
        return self.paths[node.parent][: node.begin] if node.parent is not None else np.empty(0, np.int64)

    def _forward(self, batch: Sequence[Node]) -> torch.Tensor:
        device = self.network.device
        width = max(node.length for node in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        positions = np.zeros((len(batch), width), dtype=np.int64)
        for row, node in enumerate(batch):
            if node.pack is not None:
                ids[row, : node.length] = node.pack.ids
                positions[row, : node.length] = node.pack.positions
                continue
            ids[row, : node.length] = node.tokens
            # Padding repeats the row's last position: it is never read, but must exist in the model.
            positions[row] = np.minimum(np.arange(node.begin, node.begin + width), node.end - 1)
        tensor, where = torch.from_numpy(ids).to(device), torch.from_numpy(positions).to(device)
        if not self.share:
            lengths = torch.tensor([node.length for node in batch], device=device)
            padding = torch.arange(width, device=device)[None] < lengths[:, None]
            mask = None if bool(padding.all()) else padding.long()
            return self.network.hidden(tensor, attention_mask=mask, position_ids=where, length=self.length)
        past, mask = self._past(batch, width)
        if any(node.pack is not None and node.pack.branches for node in batch):
            mask = self._seen(batch, width, 0 if past is None else past.shape[1])
        keep, slots = self._keep(batch, width)
        cache = BranchCache(self.pool, past, keep, slots)
        return self.network.hidden(
            tensor, attention_mask=mask, position_ids=where, cache=cache, length=self.length
        )

    def _past(self, batch: Sequence[Node], width: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Return the slots each row branches from, left-padded, and the mask that hides the padding.

        Padding on the right needs no mask: a left-to-right model never looks there.
        """
        device = self.network.device
        longest = max(node.begin for node in batch)
        if longest == 0:
            return None, None
        if len({(node.parent, node.begin) for node in batch}) == 1:
            return torch.from_numpy(self._path(batch[0])[None]).to(device), None
        slots = np.zeros((len(batch), longest), dtype=np.int64)
        for row, node in enumerate(batch):
            slots[row, longest - node.begin :] = self._path(node)
        begins = np.asarray([node.begin for node in batch])
        mask = None
        if begins.min() < longest:
            seen = np.arange(longest + width)[None] >= (longest - begins)[:, None]
            mask = torch.from_numpy(seen.astype(np.int64)).to(device)
        return torch.from_numpy(slots).to(device), mask

    def _seen(self, batch: Sequence[Node], width: int, longest: int) -> torch.Tensor:
        """Return what every token of every row may see, as numbers to add: rows lie side by side and branch."""
        seen = np.zeros((len(batch), 1, width, longest + width), dtype=np.bool_)
        for row, node in enumerate(batch):
            here = seen[row, 0, :, longest:]
            if node.pack is None:
                here |= np.tri(width, dtype=np.bool_)
            else:
                here[: node.length, : node.length] = node.pack.seen
                # Padding must see something, or its state is no number.
                np.fill_diagonal(here, True)
            past = seen[row, 0, :, longest - node.begin : longest]
            if node.pack is None or node.pack.past is None:
                past[:] = True
            else:
                past[: node.length] = np.arange(node.begin) < node.pack.past[:, None]
        hidden = torch.from_numpy(~seen).to(self.network.device)
        dtype = self.network.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=self.network.device).masked_fill_(
            hidden, torch.finfo(dtype).min
        )

    def _keep(self, batch: Sequence[Node], width: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Return which new tokens enter the pool (those that something branches from), and in which slots."""
        flat, slots = [], []
        for row, node in enumerate(batch):
            if node.children:
                taken = self.pool.take(kept_tokens(self.nodes, node))
                self.paths[node.index] = np.concatenate([self._path(node), taken])
                flat.append(row * width + np.arange(len(taken)))
                slots.append(taken)
        if not flat:
            return None, None
        device = self.network.device
        return (
            torch.from_numpy(np.concatenate(flat)).to(device),
            torch.from_numpy(np.concatenate(slots)).to(device),
        )

    def _score(self, batch: Sequence[Node], flat: torch.Tensor, width: int) -> None:
        """Score the wanted tokens; a run's first token is read off its parent's last state."""
        places, tokens, counts = [], [], []
        above: list[torch.Tensor] = []
        for row, node in enumerate(batch):
            if node.pack is not None:
                asked = np.asarray(node.pack.wanted, dtype=np.int64).reshape(-1, 2)
                place, token = asked[:, 0], asked[:, 1]
            else:
                begin = max(node.scored_from, 1)
                place = np.arange(begin, max(node.end, begin)) - (node.begin + 1)
                place[place < 0] = -node.begin
                token = node.ids[begin : node.end].astype(np.int64)
            before = place < 0
            above.extend(self._above(node, -int(one)) for one in place[before])
            places.append(np.where(before, -1, place + row * width))
            tokens.append(token)
            counts.append(len(place))
        index, wanted_ids = np.concatenate(places), np.concatenate(tokens)
        inside = index >= 0
        rows = flat.index_select(0, torch.from_numpy(index[inside]).to(flat.device))
        if above:
            rows = torch.cat([rows, torch.stack(above)])
        scored = self.network.logprobs(rows, np.concatenate([wanted_ids[inside], wanted_ids[~inside]]))
        found = np.empty(len(index))
        found[inside] = scored[: int(inside.sum())]
        found[~inside] = scored[int(inside.sum()) :]
        cursor = 0
        for node, count in zip(batch, counts, strict=True):
            self.logprobs[node.index] = found[cursor : cursor + count]
            cursor += count

    def collect(self, index: int, place: int, part: TokenPart) -> Array:
        """Return the log-probabilities of a part's scored tokens, along the path of the run it ends in."""
        node = self.nodes[index]
        pieces: list[Array] = []
        current: int | None = index
        end = len(part.ids)
        if node.pack is not None:
            pieces.append(self.logprobs[index][node.pack.of[place]])
            current, end = node.parent, node.pack.begins.get(place, node.begin)
        while current is not None and end > part.start:
            node = self.nodes[current]
            have = node.end - len(self.logprobs[current])
            pieces.append(self.logprobs[current][max(part.start - have, 0) : end - have])
            current, end = node.parent, node.begin
        return np.concatenate(pieces[::-1])

    def release(self, step: Step) -> None:
        """Forget what nothing will branch from any more."""
        for index in step.free:
            if index in self.paths:  # else its step was left out
                self.pool.give_back(self.paths.pop(index)[self.nodes[index].begin :])
                del self.last_hidden[index], self.logprobs[index]
        for index in step.nodes:
            if not self.nodes[index].children:
                self.logprobs.pop(index, None)


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory ran out, on a GPU or in main memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = str(error)
    return "can't allocate memory" in words or "not enough memory" in words or "out of memory" in words
