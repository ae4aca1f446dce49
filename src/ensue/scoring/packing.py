"""Short continuations of one prefix laid side by side in a row: each token once, none that is only asked about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ensue.models.request import TokenPart
from ensue.scoring.tree import Node, common_prefix

Ints = npt.NDArray[np.int64]

# Longer rows pad less and attend to more that they must not see.
ROW = 128


@dataclass(slots=True, eq=False)
class Pack:
    """The tokens of a row, where each stands in its text, which it may see, and where each part's states lie.

    `branches` says whether some token may not see all before it. `wanted` are the (place, token) pairs that are
    scored, place -1 being the state before the row; `of` names for each part which of them are its own.
    """

    ids: Ints
    positions: Ints
    seen: npt.NDArray[np.bool_]
    wanted: list[tuple[int, int]]
    of: dict[int, Ints]
    branches: bool


@dataclass(slots=True)
class _Row:
    """A row under way."""

    begin: int
    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    paths: list[list[int]] = field(default_factory=list)  # of each token, the places it sees
    last: npt.NDArray[np.int32] | None = None
    path: list[int] = field(default_factory=list)
    wanted: dict[tuple[int, int], int] = field(default_factory=dict)
    of: dict[int, Ints] = field(default_factory=dict)
    is_chain: bool = True

    def fresh(self, fed: npt.NDArray[np.int32]) -> int:
        """How many tokens of a text the row does not have yet."""
        return len(fed) - (0 if self.last is None else common_prefix(self.last, fed))

    def add(self, index: int, part: TokenPart) -> None:
        fed = part.ids[self.begin : -1]
        shared = len(fed) - self.fresh(fed)
        self.is_chain &= shared in (len(fed), len(self.ids))
        self.path = self.path[:shared]
        for offset in range(shared, len(fed)):
            self.path.append(len(self.ids))
            self.ids.append(int(fed[offset]))
            self.positions.append(self.begin + offset)
            self.paths.append(list(self.path))
        self.last = fed
        own = []
        for place in range(max(part.start, self.begin), len(part.ids)):
            before = place - 1 - self.begin
            key = (self.path[before] if before >= 0 else -1, int(part.ids[place]))
            own.append(self.wanted.setdefault(key, len(self.wanted)))
        self.of[index] = np.asarray(own, dtype=np.int64)

    def pack(self) -> Pack:
        seen = np.zeros((len(self.ids), len(self.ids)), dtype=np.bool_)
        for place, path in enumerate(self.paths):
            seen[place, path] = True
        return Pack(
            np.asarray(self.ids, dtype=np.int64),
            np.asarray(self.positions, dtype=np.int64),
            seen,
            list(self.wanted),
            self.of,
            branches=not self.is_chain,
        )


def pack_leaves(
    nodes: Sequence[Node], parts: Sequence[TokenPart], *, branch: bool, row: int = ROW
) -> list[Node]:
    """The same tree with the short leaves of each parent laid side by side; parents still come before children.

    Without `branch` only those share a row of which one begins with the other: such a row needs no mask of its own.
    """
    packed: list[Node] = []
    moved: dict[int | None, int | None] = {None: None}
    short: dict[int | None, list[int]] = {}
    for node in nodes:
        if not node.children and node.length - 1 <= row // 2 and all(parts[i].start > 0 for i in node.ends):
            short.setdefault(node.parent, []).append(node.index)
    gathered = {index for group in short.values() for index in group}

    def add(node: Node) -> None:
        node.index = len(packed)
        packed.append(node)
        if node.parent is not None:
            packed[node.parent].children.append(node.index)

    def add_rows(parent: int | None, group: Sequence[int]) -> None:
        begin = 0 if parent is None else nodes[parent].end
        for made in _rows(
            [i for index in group for i in nodes[index].ends], parts, begin, row if branch else 0
        ):
            longest = max(made.of, key=lambda i: len(parts[i].ids))
            node = Node(
                0, moved[parent], begin, begin + len(made.ids), parts[longest].ids, begin, list(made.of)
            )
            node.pack = made.pack()
            add(node)

    add_rows(None, short.get(None, ()))
    for node in nodes:
        if node.index in gathered:
            continue
        old = node.index
        moved[old] = len(packed)
        add(Node(0, moved[node.parent], node.begin, node.end, node.ids, node.scored_from, node.ends))
        add_rows(old, short.get(old, ()))
    return packed


def _rows(ends: Sequence[int], parts: Sequence[TokenPart], begin: int, room: int) -> Iterator[_Row]:
    """Parts in the order of their tokens, so that what two share lies between neighbours."""
    row = _Row(begin)
    for index in sorted(ends, key=lambda i: (parts[i].ids.astype(">u4").tobytes(), i)):
        fresh = row.fresh(parts[index].ids[begin:-1])
        # Sorted texts that add nothing, or only go on, leave a chain a chain.
        goes_on = row.is_chain and len(parts[index].ids) - 1 - begin - fresh == len(row.ids)
        if row.of and len(row.ids) + fresh > room and not (fresh == 0 or (room == 0 and goes_on)):
            yield row
            row = _Row(begin)
        row.add(index, parts[index])
    if row.of:
        yield row
