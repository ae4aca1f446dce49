"""The order of work: which tree nodes run together, and when a node's keys and values may be forgotten."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

from ensue.errors import RunFailed
from ensue.scoring.tree import Node, kept_tokens

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be held at once, in tokens.

    `batch`: tokens in one forward pass, padding included. `full`: from here on a batch is big enough to be
    efficient, and rows that would need much padding start a new one. `cache`: tokens whose keys and
    values are kept to branch from. `attended`: cached plus new positions in one pass. `run`: a single long row
    may be so long even if a batch of several may not; whole, it needs no mask.
    """

    batch: int
    full: int
    cache: int
    attended: int
    run: int = 0

    @property
    def longest_run(self) -> int:
        """How many tokens of one row go through the model at once."""
        return max(self.batch, self.run)

    def halved(self) -> Budget:
        """Return half of everything, as when memory ran out; raise when there is nothing left to halve."""
        if self.batch <= 32:
            raise RunFailed(
                "Memory ran out with the smallest batch; finished scores are kept: free memory or use a smaller "
                "model, then run again with --resume."
            )
        log.warning("out of memory: batch budget %d -> %d tokens", self.batch, self.batch // 2)
        halves = (self.batch // 2, max(self.full // 2, 1), self.cache // 2, self.attended // 2, self.run // 2)
        return Budget(*halves)


# Rows shorter than this share of the batch's longest row start a new batch once the batch is full enough.
_MIN_FILL = 0.9


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass over `nodes`, after which the cache entries of `free` are dropped."""

    nodes: tuple[int, ...]
    free: tuple[int, ...]


def make_plan(nodes: Sequence[Node], budget: Budget) -> list[Step]:
    """Return steps that run every node after its parent, holding about `budget.cache` cached tokens at most.

    Sibling subtrees whose cached runs fit the budget together run level by level (large batches); a subtree
    too large for that runs its own root first and then its children by the same rule.
    """
    weight = [0] * len(nodes)
    for node in reversed(nodes):
        weight[node.index] += kept_tokens(nodes, node)
        if node.parent is not None:
            weight[node.parent] += weight[node.index]
    steps: list[Step] = []
    roots = [node.index for node in nodes if node.parent is None]
    # (siblings still to run, room in the cache); a negative room says: all below these has run, free them.
    stack: list[tuple[list[int], int]] = [(roots, budget.cache)]
    while stack:
        group, room = stack.pop()
        if room < 0:
            steps[-1] = replace(steps[-1], free=steps[-1].free + tuple(group))
            continue
        chunk, rest = _take(group, weight, room)
        if rest:
            stack.append((rest, room))
        if len(chunk) == 1 and weight[chunk[0]] > room:
            node = nodes[chunk[0]]
            steps.append(Step((node.index,), ()))
            stack.append(([node.index], -1))
            stack.append((list(node.children), max(room - kept_tokens(nodes, node), budget.cache // 8)))
        else:
            steps.extend(_levels(nodes, chunk, budget))
    return steps


def _take(group: list[int], weight: Sequence[int], room: int) -> tuple[list[int], list[int]]:
    """Return the leading nodes of a group whose subtrees fit the room together (at least one), and the rest."""
    used = 0
    for count, index in enumerate(group):
        used += weight[index]
        if used > room:
            return group[: max(count, 1)], group[max(count, 1) :]
    return group, []


def _levels(nodes: Sequence[Node], level: list[int], budget: Budget) -> list[Step]:
    """Run whole subtrees level by level; the last step frees them all (a node attends to its whole path)."""
    steps: list[Step] = []
    cached: list[int] = []
    while level:
        steps.extend(Step(tuple(batch), ()) for batch in _batches(nodes, level, budget))
        cached.extend(index for index in level if nodes[index].children)
        level = [child for index in level for child in nodes[index].children]
    steps[-1] = replace(steps[-1], free=tuple(cached))
    return steps


def _batches(nodes: Sequence[Node], level: list[int], budget: Budget) -> Iterator[list[int]]:
    """Cut a level into batches of rows of like length under the token budget, longest first."""
    batch: list[int] = []
    longest = attended = 0
    for index in sorted(level, key=lambda i: (-nodes[i].length, -nodes[i].end, i)):
        node = nodes[index]
        rows = len(batch) + 1
        over = (
            rows * max(longest, node.length) > budget.batch
            or rows * max(attended, node.end) > budget.attended
        )
        padded = len(batch) * longest >= budget.full and node.length < _MIN_FILL * longest
        if batch and (over or padded):
            yield batch
            batch, longest, attended = [], 0, 0
        batch.append(index)
        longest, attended = max(longest, node.length), max(attended, node.end)
    if batch:
        yield batch


def cache_peak(nodes: Sequence[Node], steps: Sequence[Step]) -> int:
    """Return the largest number of cached tokens the steps hold at any moment."""
    held = peak = 0
    for step in steps:
        held += sum(kept_tokens(nodes, nodes[i]) for i in step.nodes)
        peak = max(peak, held)
        held -= sum(kept_tokens(nodes, nodes[i]) for i in step.free)
    return peak


def needed_steps(nodes: Sequence[Node], steps: Sequence[Step], done: Set[int]) -> list[bool]:
    """Say which steps must run when the parts in `done` are known: theirs may be left out, unless others branch
    from them. A step is run whole or not at all, so that a resumed run repeats the same arithmetic."""
    wanted = [any(part not in done for part in node.ends) for node in nodes]
    needed = [False] * len(steps)
    for position in range(len(steps) - 1, -1, -1):
        if any(wanted[i] for i in steps[position].nodes):
            needed[position] = True
            for index in steps[position].nodes:
                parent = nodes[index].parent
                if parent is not None:
                    wanted[parent] = True
    return needed
