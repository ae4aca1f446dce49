"""The packed tree: whole prefix trees laid into rows in depth-first order, and which blocks of a row see which.

Each token of a row carries one number, `ends`: the place after the last descendant of its node. The token at place q
sees the one at place k exactly where `k <= q < ends[k]`, and in a layer that looks back only so far, where their
positions are also less apart than that. Nothing is padded but the end of a row, and nothing is cached: a row is one
forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.scoring.tree import Node

Ints = npt.NDArray[np.int32]

# What sees what is listed in blocks of so many tokens; of texts of some hundred tokens larger ones are half empty.
BLOCK = 64


class Row(NamedTuple):
    """The tokens of one forward pass, where each stands in its text, and what is read off it.

    The state at place `states[i]` is asked about the token `targets[i]`. `of` names for each part that ends in the
    row the pieces `[begin, end)` of these that are its own, in the order of its tokens.
    """

    ids: Ints
    positions: Ints
    ends: Ints
    states: Ints
    targets: Ints
    of: dict[int, list[tuple[int, int]]]

    def padded(self, length: int) -> Row:
        """Return the row with tokens at its end that see only themselves."""
        more = length - len(self.ids)
        return self._replace(
            ids=np.pad(self.ids, (0, more)),
            positions=np.pad(self.positions, (0, more)),
            ends=np.concatenate([self.ends, np.arange(len(self.ids) + 1, length + 1, dtype=np.int32)]),
        )


def make_rows(nodes: Sequence[Node], starts: Sequence[int], room: int) -> Iterator[Row]:
    """Lay a tree into rows of at most `room` tokens; `starts` says where the scored tokens of each part begin.

    Trees come in the order of their first parts, so that what an interrupted run has finished is a sample of whole
    documents. Where a tree is cut, the path above the cut is repeated in the next row (a path longer than `room`
    makes a longer row). Every part is read off one row.
    """
    fed = [_fed(node) for node in nodes]
    for chosen, repeated in _divided(nodes, fed, room):
        yield _laid(nodes, fed, starts, chosen, repeated)


def _fed(node: Node) -> int:
    """Count the tokens of a node that are run: the last one of a text is only asked about."""
    return node.end - node.begin - (0 if node.children else 1)


def _divided(nodes: Sequence[Node], fed: Sequence[int], room: int) -> Iterator[tuple[list[int], int]]:
    """Yield the nodes of each row in depth-first order, each after its whole path, and how many are repeated."""
    first = [min(node.ends) if node.ends else 2**62 for node in nodes]
    for node in reversed(nodes):
        if node.parent is not None:
            first[node.parent] = min(first[node.parent], first[node.index])
    roots = sorted((node.index for node in nodes if node.parent is None), key=first.__getitem__)
    row: list[int] = []
    held = repeated = 0
    path: list[int] = []
    stack = [(index, 0) for index in reversed(roots)]
    while stack:
        index, depth = stack.pop()
        del path[depth:]
        # A row is filled up even where that cuts a tree: to leave it unfilled costs more than to repeat a path.
        if row and held + fed[index] > room:
            yield row, repeated
            row = []
        if not row:
            row, held, repeated = list(path), nodes[index].begin, len(path)
        row.append(index)
        held += fed[index]
        if children := nodes[index].children:
            path.append(index)
            stack.extend((child, depth + 1) for child in reversed(children))
    if row:
        yield row, repeated


def _laid(
    nodes: Sequence[Node], fed: Sequence[int], starts: Sequence[int], chosen: Sequence[int], repeated: int
) -> Row:
    """Lay nodes side by side, parents before their children."""
    own = [nodes[index] for index in chosen]
    runs = [fed[index] for index in chosen]
    begins = [node.begin for node in own]
    borders = [0, *accumulate(runs)]
    place = dict(zip(chosen, borders, strict=False))
    after = dict(zip(chosen, borders[1:], strict=True))
    for node in reversed(own):
        above = node.parent
        if above is not None and after[above] < after[node.index]:
            after[above] = after[node.index]
    asked = [max(node.end - node.scored_from, 0) for node in own]
    scored = dict(zip(chosen, accumulate(asked, initial=0), strict=False))  # where the targets of each begin
    # Each token is asked about at the state before it.
    before = [node.scored_from + at - node.begin - 1 for node, at in zip(own, borders, strict=False)]
    states = _counting_up(before, asked)
    for node in own:
        if node.scored_from == node.begin < node.end:  # read off the last state of the parent
            assert node.parent is not None  # the first token of a text is never scored
            last = nodes[node.parent]
            states[scored[node.index]] = place[node.parent] + last.end - last.begin - 1
    return Row(
        ids=np.concatenate(
            [node.ids[begin : begin + run] for node, begin, run in zip(own, begins, runs, strict=True)]
        ),
        positions=_counting_up(begins, runs),
        ends=np.repeat(np.asarray(list(after.values()), np.int32), runs),
        states=states,
        targets=np.concatenate([node.ids[node.scored_from : node.end] for node in own]),
        of={
            part: _pieces(nodes, scored, node, starts[part]) for node in own[repeated:] for part in node.ends
        },
    )


def _counting_up(begins: Sequence[int], counts: Sequence[int]) -> Ints:
    """Return numbers that count up from each of these, so many of each."""
    many = np.asarray(counts)
    ends = np.cumsum(many)
    found = np.repeat((np.asarray(begins) - ends + many).astype(np.int32), many)
    found += np.arange(len(found), dtype=np.int32)
    return found


def _pieces(
    nodes: Sequence[Node], scored: Mapping[int, int], node: Node, start: int
) -> list[tuple[int, int]]:
    """Return which targets belong to a part that ends in a node, along its path."""
    pieces: list[tuple[int, int]] = []
    while node.end > start:
        offset = scored[node.index] - node.scored_from
        pieces.append((offset + max(start, node.scored_from), offset + node.end))
        if node.parent is None:
            break
        node = nodes[node.parent]
    return pieces[::-1]


class Blocks(NamedTuple):
    """Which blocks of earlier places each block of a row sees, in order: how many, and which; see `seen_blocks`."""

    counts: Ints
    queries: Ints
    places: Ints
    keys: Ints


def seen_blocks(
    ends: Ints, block: int = BLOCK, *, positions: Ints | None = None, window: int | None = None
) -> tuple[Blocks, Blocks]:
    """Find which blocks of a row see which in part, and which they see whole; `window` is how far a token looks back.

    The i-th pair of `queries` and `keys` says that one block sees another, as the `places[i]`-th of those it sees.
    From the least and the largest numbers in each block alone, so that a long row takes no table of all pairs.
    """
    count = len(ends) // block
    in_blocks = ends.reshape(count, block)
    here = np.arange(count)
    # A block of keys is seen by itself and by those after it, up to where the last text in it ends.
    last = np.maximum((in_blocks.max(1) - 1) // block, here)
    reach = last - here + 1
    keys = np.repeat(here, reach)
    queries = np.arange(len(keys)) - np.repeat(np.cumsum(reach) - reach, reach) + keys
    whole = (queries > keys) & (in_blocks.min(1)[keys] >= (queries + 1) * block)
    if window is not None:
        assert positions is not None
        low, high = (find(positions.reshape(count, block), 1) for find in (np.min, np.max))
        whole &= high[queries] - low[keys] < window
        # What is on one path is as far apart as its positions are.
        near = low[queries] - high[keys] < window
        queries, keys, whole = queries[near], keys[near], whole[near]
    return _listed(queries[~whole], keys[~whole], count), _listed(queries[whole], keys[whole], count)


def _listed(queries: npt.NDArray[np.int64], keys: npt.NDArray[np.int64], count: int) -> Blocks:
    order = np.argsort(queries, kind="stable")
    counts = np.bincount(queries, minlength=count)
    places = np.arange(len(keys)) - np.repeat(np.cumsum(counts) - counts, counts)
    return Blocks(*(one.astype(np.int32) for one in (counts, queries[order], places, keys[order])))
