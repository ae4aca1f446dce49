"""The prefix tree: which token runs the requests of a run have in common, so that each is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ensue.models.request import TokenPart

if TYPE_CHECKING:
    from ensue.scoring.packing import Pack

Ids = npt.NDArray[np.int32]


@dataclass(slots=True, eq=False)
class Node:
    """A run of tokens `[begin, end)` that follows its parent's run; `ends` names the parts that end here.

    `scored_from` is the first position in the run that any part through it wants scored.
    """

    index: int
    parent: int | None
    begin: int
    end: int
    ids: Ids
    scored_from: int
    ends: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    # Where several short parts lie side by side in this run.
    pack: Pack | None = None

    @property
    def length(self) -> int:
        return self.end - self.begin

    @property
    def tokens(self) -> Ids:
        return self.ids[self.begin : self.end]


@dataclass(slots=True, eq=False)
class _Branch:
    """A branching point: the parts `[low, high)`, in sorted order, agree up to `depth`."""

    depth: int
    low: int
    high: int
    children: list[_Branch] = field(default_factory=list)


def common_prefix(a: Ids, b: Ids) -> int:
    """How many leading tokens two sequences share."""
    n = min(len(a), len(b))
    different = np.flatnonzero(a[:n] != b[:n])
    return int(different[0]) if len(different) else n


def build_tree(parts: Sequence[TokenPart], *, min_run: int = 8, min_saved: int = 32) -> list[Node]:
    """The nodes of the prefix tree, parents before children.

    A shared run becomes a node of its own when it has at least `min_run` tokens and saves at least
    `min_saved`; shorter ones are cheaper to compute again than to branch from.
    """
    if not parts:
        return []
    order = sorted(range(len(parts)), key=lambda i: (parts[i].ids.astype(">u4").tobytes(), i))
    root = _branches(parts, order)
    nodes: list[Node] = []
    pending: list[tuple[_Branch, int | None, int]] = [(root, None, 0)]
    while pending:
        branch, parent, begin = pending.pop()
        below = parent
        run = branch.depth - begin
        ends = [i for i in order[branch.low : branch.high] if len(parts[i].ids) == branch.depth]
        leaf = not branch.children
        fan_out = len(branch.children) + bool(ends)
        if leaf or (run >= min_run and run * (fan_out - 1) >= min_saved):
            through = order[branch.low : branch.high]
            node = Node(
                index=len(nodes),
                parent=parent,
                begin=begin,
                end=branch.depth,
                ids=parts[through[0]].ids,
                scored_from=max(begin, min(parts[i].start for i in through)),
                ends=ends,
            )
            nodes.append(node)
            if parent is not None:
                nodes[parent].children.append(node.index)
            below, begin = node.index, branch.depth
        elif ends:
            # Not worth a node, yet some part ends here: it gets a leaf of its own.
            pending.append((_Branch(branch.depth, branch.low, branch.low + len(ends)), parent, begin))
        pending.extend((child, below, begin) for child in reversed(branch.children))
    return nodes


def _branches(parts: Sequence[TokenPart], order: list[int]) -> _Branch:
    """The full radix tree over the sorted parts, from the shared prefixes of neighbours."""
    root = _Branch(0, 0, len(order))
    stack = [root]
    for position, index in enumerate(order):
        ids = parts[index].ids
        shared = common_prefix(parts[order[position - 1]].ids, ids) if position else 0
        last: _Branch | None = None
        while stack[-1].depth > shared:
            last = stack.pop()
            last.high = position
        if stack[-1].depth < shared:
            assert last is not None  # a deeper branch was popped, else the depth would not exceed it
            middle = _Branch(shared, last.low, len(order), [last])
            stack[-1].children[-1] = middle
            stack.append(middle)
        if stack[-1].depth < len(ids):
            leaf = _Branch(len(ids), position, len(order))
            stack[-1].children.append(leaf)
            stack.append(leaf)
    for branch in stack:
        branch.high = len(order)
    return root


def split_long(nodes: list[Node], limit: int) -> list[Node]:
    """The same tree with every run longer than `limit` cut into a chain, so that no step outgrows memory."""
    if all(node.length <= limit for node in nodes):
        return nodes
    cut: list[Node] = []
    last_piece: dict[int, int] = {}
    for node in nodes:
        parent = None if node.parent is None else last_piece[node.parent]
        for begin in range(node.begin, node.end, limit):
            end = min(begin + limit, node.end)
            piece = Node(
                index=len(cut),
                parent=parent,
                begin=begin,
                end=end,
                ids=node.ids,
                scored_from=min(max(begin, node.scored_from), end),
                ends=node.ends if end == node.end else [],
            )
            cut.append(piece)
            if parent is not None:
                cut[parent].children.append(piece.index)
            parent = piece.index
        last_piece[node.index] = parent if parent is not None else -1
    return cut
