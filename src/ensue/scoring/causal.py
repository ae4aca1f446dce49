"""Runs a plan on a left-to-right model: every shared prefix once, the head only where a token is scored."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence, Set

import numpy as np
import numpy.typing as npt
import torch

from ensue.errors import RunFailed
from ensue.scoring.branch_cache import BranchCache, Pool, Slots
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget, Step, cache_peak, make_plan, needed_steps
from ensue.scoring.request import PartScore, TokenPart
from ensue.scoring.tree import Node, build_tree, split_long

log = logging.getLogger(__name__)

Finished = list[tuple[int, PartScore]]
Array = npt.NDArray[np.float64]

_NO_SHARING = 2**31


class CausalExecutor:
    """Scores token parts with one network under a token budget; `share` says whether prefixes are branched from."""

    def __init__(self, network: Network, budget: Budget, *, share: bool = True) -> None:
        self.network = network
        self.budget = budget
        self.share = share

    def run(self, parts: Sequence[TokenPart], done: Set[int] = frozenset()) -> Iterator[Finished]:
        """Scores of the parts not in `done`, a batch at a time. Out of memory halves the budget and goes on."""
        finished = set(done)
        offset = list(range(len(parts)))
        while True:
            try:
                known = {j for j, i in enumerate(offset) if i in finished}
                for batch in self._attempt([parts[i] for i in offset], known):
                    named = [(offset[j], score) for j, score in batch]
                    finished.update(i for i, _ in named)
                    yield named
                return
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                smaller = self.budget.halved()
                if smaller is None:
                    raise RunFailed(
                        "Memory ran out with the smallest batch; finished scores are kept: free memory or use "
                        "a smaller model, then run again with --resume."
                    ) from None
            log.warning("out of memory: batch budget %d -> %d tokens", self.budget.batch, smaller.batch)
            self.budget = smaller
            offset = [i for i in offset if i not in finished]
            if self.network.device.type == "cuda":
                torch.cuda.empty_cache()

    def _attempt(self, parts: Sequence[TokenPart], done: Set[int]) -> Iterator[Finished]:
        if self.share:
            nodes = split_long(build_tree(parts), self.budget.longest_run)
        else:
            nodes = build_tree(parts, min_run=_NO_SHARING)
        steps = make_plan(nodes, self.budget)
        needed = needed_steps(nodes, steps, done)
        pass_ = _Pass(self.network, nodes, Pool(cache_peak(nodes, steps)), share=self.share)
        for step, wanted in zip(steps, needed, strict=True):
            if not wanted:
                pass_.release(step)
                continue
            pass_.step(step)
            batch = [
                (part, PartScore(pass_.collect(index, parts[part].start)))
                for index in step.nodes
                for part in nodes[index].ends
                if part not in done
            ]
            pass_.release(step)
            if batch:
                yield batch


class _Pass:
    """One walk over a plan: which nodes are cached where, and the log-probabilities found so far."""

    def __init__(self, network: Network, nodes: Sequence[Node], pool: Pool, *, share: bool) -> None:
        self.network, self.nodes, self.pool, self.share = network, nodes, pool, share
        self.paths: dict[int, Slots] = {}
        self.last_hidden: dict[int, torch.Tensor] = {}
        self.logprobs: dict[int, Array] = {}

    def step(self, step: Step) -> None:
        """Run one batch of nodes."""
        with torch.inference_mode():
            batch = [self.nodes[i] for i in step.nodes]
            hidden = self._forward(batch)
            width = hidden.shape[1]
            flat = hidden.flatten(0, 1)
            self._score(batch, flat, width)
            for row, node in enumerate(batch):
                if node.children:
                    self.last_hidden[node.index] = flat[row * width + node.length - 1].clone()

    def _forward(self, batch: Sequence[Node]) -> torch.Tensor:
        device = self.network.device
        width = max(node.length for node in batch)
        ids = np.zeros((len(batch), width), dtype=np.int64)
        positions = np.zeros((len(batch), width), dtype=np.int64)
        for row, node in enumerate(batch):
            ids[row, : node.length] = node.tokens
            # Padding repeats the row's last position: it is never read, but must exist in the model.
            positions[row] = np.minimum(np.arange(node.begin, node.begin + width), node.end - 1)
        tensor, where = torch.from_numpy(ids).to(device), torch.from_numpy(positions).to(device)
        if not self.share:
            lengths = torch.tensor([node.length for node in batch], device=device)
            padding = torch.arange(width, device=device)[None] < lengths[:, None]
            mask = None if bool(padding.all()) else padding.long()
            return self.network.hidden(tensor, attention_mask=mask, position_ids=where)
        past, mask = self._past(batch, width)
        keep, slots = self._keep(batch, width)
        cache = BranchCache(self.pool, past, keep, slots)
        return self.network.hidden(tensor, attention_mask=mask, position_ids=where, cache=cache)

    def _past(self, batch: Sequence[Node], width: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The slots each row branches from, left-padded, and the mask that hides the padding.

        Padding on the right needs no mask: a left-to-right model never looks there.
        """
        device = self.network.device
        longest = max(node.begin for node in batch)
        if longest == 0:
            return None, None
        if len({node.parent for node in batch}) == 1:
            path = self.paths[batch[0].parent]  # type: ignore[index]
            return torch.from_numpy(path[None]).to(device), None
        slots = np.zeros((len(batch), longest), dtype=np.int64)
        for row, node in enumerate(batch):
            if node.parent is not None:
                slots[row, longest - node.begin :] = self.paths[node.parent]
        begins = np.asarray([node.begin for node in batch])
        mask = None
        if begins.min() < longest:
            seen = np.arange(longest + width)[None] >= (longest - begins)[:, None]
            mask = torch.from_numpy(seen.astype(np.int64)).to(device)
        return torch.from_numpy(slots).to(device), mask

    def _keep(self, batch: Sequence[Node], width: int) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """Which new tokens enter the pool (those that something branches from), and in which slots."""
        flat, slots = [], []
        for row, node in enumerate(batch):
            if node.children:
                taken = self.pool.take(node.length)
                above = self.paths[node.parent] if node.parent is not None else taken[:0]
                self.paths[node.index] = np.concatenate([above, taken])
                flat.append(row * width + np.arange(node.length))
                slots.append(taken)
        if not flat:
            return None, None
        device = self.network.device
        return (
            torch.from_numpy(np.concatenate(flat)).to(device),
            torch.from_numpy(np.concatenate(slots)).to(device),
        )

    def _score(self, batch: Sequence[Node], flat: torch.Tensor, width: int) -> None:
        """Log-probabilities of the wanted tokens; a run's first token is read off its parent's last state."""
        own: list[npt.NDArray[np.int64]] = []
        own_targets: list[npt.NDArray[np.int64]] = []
        above: list[torch.Tensor] = []
        above_targets: list[int] = []
        for row, node in enumerate(batch):
            first = max(node.scored_from, node.begin + 1)
            own.append(
                row * width + np.arange(first - 1 - node.begin, max(node.length - 1, first - 1 - node.begin))
            )
            own_targets.append(node.ids[first : node.end].astype(np.int64))
            if node.scored_from == node.begin and node.parent is not None:
                above.append(self.last_hidden[node.parent])
                above_targets.append(int(node.ids[node.begin]))
        index = np.concatenate(own)
        rows = flat.index_select(0, torch.from_numpy(index).to(flat.device))
        if above:
            rows = torch.cat([rows, torch.stack(above)])
        targets = np.concatenate([*own_targets, np.asarray(above_targets, dtype=np.int64)])
        found = self.network.logprobs(rows, targets)
        cursor, extra = 0, len(index)
        for node, wanted in zip(batch, own_targets, strict=True):
            piece = found[cursor : cursor + len(wanted)]
            cursor += len(wanted)
            if node.scored_from == node.begin and node.parent is not None:
                piece = np.concatenate([found[extra : extra + 1], piece])
                extra += 1
            self.logprobs[node.index] = piece

    def collect(self, index: int, start: int) -> Array:
        """Log-probabilities from position `start` to the end of a node, along its path."""
        pieces: list[Array] = []
        current: int | None = index
        while current is not None:
            node = self.nodes[current]
            if node.end > start:
                have = node.end - len(self.logprobs[current])
                pieces.append(self.logprobs[current][max(start - have, 0) :])
            current = node.parent
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
    """Whether an error says that memory ran out, on a GPU or in main memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    words = str(error)
    return "can't allocate memory" in words or "not enough memory" in words or "out of memory" in words
