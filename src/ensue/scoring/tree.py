"""The prefix tree as objects, of which batches are made: shared runs, and short continuations packed into one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ensue.models.request import TokenPart
from ensue.scoring.forest import grow_forest
from ensue.scoring.prefixes import Ids, common_prefix


@dataclass(slots=True, eq=False)
class Node:
    """A run of tokens `[begin, end)` that branches off its parent's at `begin`; `ends` names the parts that end here.

    A tree as it is built branches at the ends of runs alone, and parts end there; see `merge_spines`.

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

    @property
    def all_begins(self) -> set[int]:
        """The positions at which this run, or the parts that lie side by side in it, branch off."""
        return set(self.pack.begins.values()) if self.pack is not None and self.pack.begins else {self.begin}


def build_tree(parts: Sequence[TokenPart], *, min_run: int = 8, min_saved: int = 32) -> list[Node]:
    """Build the prefix tree of parts, with an object for each run that `grow_forest` finds."""
    forest = grow_forest(parts, min_run=min_run, min_saved=min_saved)
    places = forest.parts.tolist()
    columns = ("parents", "begins", "ends", "firsts", "counts", "scored_from")
    nodes: list[Node] = []
    for parent, begin, end, first, count, start in zip(
        *(getattr(forest, name).tolist() for name in columns), strict=True
    ):
        above = None if parent < 0 else parent
        ids = parts[places[first]].ids
        nodes.append(Node(len(nodes), above, begin, end, ids, start, places[first : first + count]))
        if above is not None:
            nodes[above].children.append(len(nodes) - 1)
    return nodes


def split_long(nodes: list[Node], limit: int) -> list[Node]:
    """Cut every run of a tree longer than `limit` into a chain, so that no step outgrows memory."""
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


def merge_spines(nodes: Sequence[Node], limit: int) -> list[Node]:
    """Let every run go on, up to `limit` tokens, into the child that leads furthest; parents come before children.

    The others then branch off inside it, and parts may end inside it: a text that something branches off after every
    sentence is one run, not a chain of short ones that wait for each other.
    """
    reach = [node.end for node in nodes]
    for node in reversed(nodes):
        if node.parent is not None:
            reach[node.parent] = max(reach[node.parent], reach[node.index])
    heirs = set()
    for node in nodes:
        able = [child for child in node.children if nodes[child].pack is None]
        if able and node.pack is None:
            heirs.add(max(able, key=lambda child: (reach[child], -child)))
    merged: list[Node] = []
    spine: dict[int | None, int | None] = {None: None}
    for node in nodes:
        above = spine[node.parent]
        if above is not None and node.index in heirs and node.end - merged[above].begin <= limit:
            longer = merged[above]
            if longer.scored_from == longer.end:
                longer.scored_from = node.scored_from
            longer.end, longer.ids, longer.ends = node.end, node.ids, longer.ends + node.ends
            spine[node.index] = above
            continue
        spine[node.index] = len(merged)
        copy = Node(len(merged), above, node.begin, node.end, node.ids, node.scored_from, list(node.ends))
        copy.pack = node.pack
        merged.append(copy)
        if above is not None:
            merged[above].children.append(copy.index)
    return merged


def lay_branches(nodes: Sequence[Node], parts: Sequence[TokenPart], room: int) -> list[Node]:
    """Lay the short leaves that branch off one run at different places side by side, in rows of up to `room` tokens.

    Apart, each would be a row with a copy of the keys and values of all before it.
    """
    short: dict[int, list[Node]] = {}
    for node in nodes:
        if node.parent is not None and not node.children and 1 < node.length <= ROW:
            short.setdefault(node.parent, []).append(node)
    several = {parent: group for parent, group in short.items() if len({one.begin for one in group}) > 1}
    gathered = {one.index for group in several.values() for one in group}
    if not gathered:
        return list(nodes)
    laid: list[Node] = []
    moved: dict[int | None, int | None] = {None: None}
    for node in nodes:
        if node.index not in gathered:
            moved[node.index] = len(laid)
            above = moved[node.parent]
            copy = Node(len(laid), above, node.begin, node.end, node.ids, node.scored_from, node.ends)
            copy.pack = node.pack
            laid.append(copy)
    for parent, group in several.items():
        for row in _filled(sorted(group, key=lambda one: (one.begin, one.index)), room):
            begin = max(one.begin for one in row)
            pack = _beside([(one.begin, one.pack or _pack_of(one, parts)) for one in row])
            ends = [part for one in row for part in one.ends]
            node = Node(len(laid), moved[parent], begin, begin + len(pack.ids), row[0].ids, begin, ends)
            node.pack = pack
            laid.append(node)
    for node in laid:
        if node.parent is not None:
            laid[node.parent].children.append(node.index)
    return laid


def _filled(leaves: Sequence[Node], room: int) -> Iterator[list[Node]]:
    """Divide leaves into rows of up to `room` tokens."""
    row: list[Node] = []
    for one in leaves:
        if row and sum(other.length for other in row) + one.length > room:
            yield row
            row = []
        row.append(one)
    yield row


def _pack_of(leaf: Node, parts: Sequence[TokenPart]) -> Pack:
    """Return a leaf as a row of its own."""
    row = _Row(leaf.begin)
    for index in leaf.ends:
        row.add(index, parts[index])
    return row.pack()


def _beside(packs: Sequence[tuple[int, Pack]]) -> Pack:
    """Join rows that begin at different positions to one, in which none sees another."""
    count = sum(len(one.ids) for _, one in packs)
    seen = np.zeros((count, count), dtype=np.bool_)
    past = np.empty(count, dtype=np.int64)
    wanted: list[tuple[int, int]] = []
    of: dict[int, Ints] = {}
    begins: dict[int, int] = {}
    at = 0
    for begin, one in packs:
        here = slice(at, at + len(one.ids))
        seen[here, here] = one.seen
        past[here] = begin
        of |= {part: own + len(wanted) for part, own in one.of.items()}
        begins |= dict.fromkeys(one.of, begin)
        wanted += [(place + at if place >= 0 else place, token) for place, token in one.wanted]
        at = here.stop
    ids, positions = (
        np.concatenate([getattr(one, name) for _, one in packs]) for name in ("ids", "positions")
    )
    return Pack(ids, positions, seen, wanted, of, branches=True, begins=begins, past=past)


def kept_tokens(nodes: Sequence[Node], node: Node) -> int:
    """Count the tokens of a run that others branch from."""
    return max((nodes[child].begin for child in node.children), default=node.begin) - node.begin


Ints = npt.NDArray[np.int64]

# Longer rows pad less and attend to more that they must not see.
ROW = 256
# Rows that branch off a long run: what they attend to of it outweighs what they must not see of each other.
LONG_ROW = 512


@dataclass(slots=True, eq=False)
class Pack:
    """The tokens of a row, where each stands in its text, which it may see, and where each part's states lie.

    `branches` says whether some token may not see all before it. `wanted` are the (place, token) pairs that are
    scored, place -n being the state before position n of the run that the row branches off; `of` names for each part
    which of them are its own. Where parts branch off at different positions, `begins` has that of each part, and
    `past` how much of the run before each token sees.
    """

    ids: Ints
    positions: Ints
    seen: npt.NDArray[np.bool_]
    wanted: list[tuple[int, int]]
    of: dict[int, Ints]
    branches: bool
    begins: dict[int, int] = field(default_factory=dict)
    past: Ints | None = None


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
        """Count the tokens of a text that the row does not have yet."""
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
            key = (self.path[before] if before >= 0 else -self.begin, int(part.ids[place]))
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
    """Lay the short leaves of each parent of a tree side by side; parents still come before children.

    Runs that lead to one leaf alone are one with it. Without `branch` only those share a row of which one begins with
    the other: such a row needs no mask of its own.
    """
    packed: list[Node] = []
    moved: dict[int | None, int | None] = {None: None}
    short: dict[int | None, list[int]] = {}
    tails = _tails(nodes, parts, row // 2 + 1)
    gathered: set[int] = set()
    for node in nodes:
        # What a parent alone goes on to is left to `merge_spines`.
        if node.index in tails and (node.parent is None or len(nodes[node.parent].children) > 1):
            short.setdefault(node.parent, []).append(node.index)
            below = [node.index]
            while below:
                gathered.update(below)
                below = nodes[below[0]].children

    def add(node: Node) -> None:
        node.index = len(packed)
        packed.append(node)
        if node.parent is not None:
            packed[node.parent].children.append(node.index)

    def add_rows(parent: int | None, group: Sequence[int]) -> None:
        begin = 0 if parent is None else nodes[parent].end
        for made in _rows([i for index in group for i in tails[index]], parts, begin, row if branch else 0):
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


def _tails(nodes: Sequence[Node], parts: Sequence[TokenPart], limit: int) -> dict[int, list[int]]:
    """Return, for runs after which nothing branches, up to `limit` tokens, the parts from there on."""
    tails: dict[int, list[int]] = {}
    reach: dict[int, int] = {}
    for node in reversed(nodes):
        if len(node.children) > 1 or any(child not in tails for child in node.children):
            continue
        end = max((reach[child] for child in node.children), default=node.end)
        if end - node.begin <= limit and all(parts[i].start > 0 for i in node.ends):
            tails[node.index] = node.ends + [i for child in node.children for i in tails[child]]
            reach[node.index] = end
    return tails


def _rows(ends: Sequence[int], parts: Sequence[TokenPart], begin: int, room: int) -> Iterator[_Row]:
    """Yield rows of parts in the order of their tokens, so that what two share lies between neighbours."""
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
