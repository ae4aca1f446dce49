"""The packed tree: whole prefix trees laid into rows in depth-first order, and which blocks of a row see which.

Each token of a row carries one number, `ends`: the place after the last descendant of its node. The token at place q
sees the one at place k exactly where `k <= q < ends[k]`, and in a layer that looks back only so far, where their
positions are also less apart than that. Nothing is padded but the end of a row, and nothing is cached: a row is one
forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.scoring.forest import Forest, borders_of, counting_up
from ensue.scoring.prefixes import Ids, Places

Ints = npt.NDArray[np.int32]

# What sees what is listed in blocks of so many tokens; of texts of some hundred tokens larger ones are half empty.
BLOCK = 64


class Pieces(NamedTuple):
    """Which targets of a row belong to which part: `parts[i]` has the next `counts[i]` of the pieces
    `[begins[j], ends[j])`, in the order of its tokens."""

    parts: list[int]
    counts: Places
    begins: Places
    ends: Places

    def of(self, found: npt.NDArray[Any]) -> list[tuple[int, npt.NDArray[Any]]]:
        """Return what was found for the targets of each part, of what was found for all."""
        lengths = self.ends - self.begins
        borders = borders_of(lengths)[borders_of(self.counts)].tolist()
        own = found[counting_up(self.begins, lengths)]
        # Copies, so that no part that is kept keeps those of a whole row.
        return [(part, own[a:b].copy()) for part, (a, b) in zip(self.parts, pairwise(borders), strict=True)]


class Row(NamedTuple):
    """The tokens of one forward pass, where each stands in its text, and what is read off it.

    The state at place `states[i]` is asked about the token `targets[i]`.
    """

    ids: Ints
    positions: Ints
    ends: Ints
    states: Ints
    targets: Ints
    pieces: Pieces

    def padded(self, length: int) -> Row:
        """Return the row with tokens at its end that see only themselves."""
        more = length - len(self.ids)
        return self._replace(
            ids=np.pad(self.ids, (0, more)),
            positions=np.pad(self.positions, (0, more)),
            ends=np.concatenate([self.ends, np.arange(len(self.ids) + 1, length + 1, dtype=np.int32)]),
        )


def make_rows(forest: Forest, room: int) -> Iterator[Row]:
    """Lay trees into rows of at most `room` tokens.

    Trees come in the order of their first parts, so that what an interrupted run has finished is a sample of whole
    documents. Where a tree is cut, the path above the cut is repeated in the next row (a path longer than `room`
    makes a longer row). Every part is read off one row.
    """
    laying = _Laying(forest.reordered(_by_first_parts(forest)))
    begin, count = 0, len(forest.parents)
    while begin < count:
        end = laying.filled(begin, room)
        yield laying.row(begin, end)
        begin = end


def _by_first_parts(forest: Forest) -> Places:
    """Return the runs of trees in the order of their first parts."""
    roots = np.flatnonzero(forest.parents < 0)
    first = np.minimum.reduceat(forest.ending, borders_of(forest.counts)[roots])
    order = np.argsort(first)
    return counting_up(roots[order], np.diff(roots, append=len(forest.parents))[order])


class _Laying:
    """Trees, the runs of each in depth-first order; a row is what lies between two cuts, after the path to the first.

    Of each run `fed` tokens are run, as the last one of a text is only asked about, and `asked` are scored, the first
    of them at the last state of the run above where it is `from_above`; `after` is the run after the last that goes
    on from it. `parts` are those that end in runs, run by run, and `paths` for one after the other the runs in which
    some of it is scored, of which it skips the first `skipped` that are asked.
    """

    def __init__(self, forest: Forest) -> None:
        self.forest, parents = forest, forest.parents
        is_leaf = np.full(len(parents) + 1, True)
        is_leaf[parents] = False  # -1, for none, is the last place
        self.lengths = forest.ends - forest.begins
        self.fed = self.lengths - is_leaf[:-1]
        self.after = _after(parents, is_leaf[:-1])
        self.asked = np.maximum(forest.ends - forest.scored_from, 0)
        self.from_above = forest.scored_from == forest.begins
        self.fed_before, self.ended_before = borders_of(self.fed), borders_of(forest.counts)
        self.parts = forest.ending
        starts = forest.starts[self.parts]
        of, self.paths = _paths(forest, starts)
        self.path_lengths = np.bincount(of, minlength=len(starts))
        self.paths_before = borders_of(self.path_lengths)
        self.skipped = np.maximum(starts[of] - forest.scored_from[self.paths], 0)
        # Of each run, where its tokens and its targets begin in the row under way.
        self.place, self.scored = np.empty((2, len(parents)), np.int64)

    def filled(self, begin: int, room: int) -> int:
        """Return where a row that begins with a run is full."""
        # It is filled up even where that cuts a tree: to leave it unfilled costs more than to repeat a path.
        most = room - self.forest.begins[begin] + self.fed_before[begin]
        return max(int(np.searchsorted(self.fed_before, most, "right")) - 1, begin + 1)

    def row(self, begin: int, end: int) -> Row:
        """Lay the runs `[begin, end)` side by side."""
        forest, place, scored = self.forest, self.place, self.scored
        path: list[int] = []
        above = forest.parents[begin]
        while above >= 0:
            path.insert(0, above)
            above = forest.parents[above]
        own = np.concatenate([np.asarray(path, np.int64), np.arange(begin, end)])
        fed, asked, begins, scored_from = (
            self.fed[own],
            self.asked[own],
            forest.begins[own],
            forest.scored_from[own],
        )
        borders, targets = borders_of(fed), borders_of(asked)
        place[own], scored[own] = borders[:-1], targets[:-1]
        # Each token is asked about at the state before it.
        states = counting_up(scored_from - begins + borders[:-1] - 1, asked, np.int32)
        first = self.from_above[own]
        above = forest.parents[own[first]]
        assert (above >= 0).all()  # the first token of a text is never scored
        states[targets[:-1][first]] = place[above] + self.lengths[above] - 1
        sources = forest.sources[own]
        return Row(
            ids=_taken(forest.tokens, sources + begins, fed),
            positions=counting_up(begins, fed, np.int32),
            ends=np.repeat(
                borders[np.minimum(self.after[own], end) - begin + len(path)].astype(np.int32), fed
            ),
            states=states,
            targets=_taken(forest.tokens, sources + scored_from, asked),
            pieces=self._pieces(*self.ended_before[[begin, end]]),
        )

    def _pieces(self, begin: int, end: int) -> Pieces:
        """Return which targets of the row under way belong to parts `[begin, end)`."""
        here = slice(*self.paths_before[[begin, end]])
        runs = self.paths[here]
        begins, ends = self.scored[runs] + self.skipped[here], self.scored[runs] + self.asked[runs]
        return Pieces(self.parts[begin:end].tolist(), self.path_lengths[begin:end], begins, ends)


def _after(parents: Places, is_leaf: npt.NDArray[np.bool_]) -> Places:
    """Return for each run the one after the last that goes on from it."""
    after = np.arange(1, len(parents) + 1)
    below = parents >= 0
    leaves = np.flatnonzero(below & is_leaf)
    np.maximum.at(after, parents[leaves], leaves + 1)
    for run in np.flatnonzero(below & ~is_leaf)[::-1].tolist():
        after[parents[run]] = max(after[parents[run]], after[run])
    return after


def _paths(forest: Forest, starts: Places) -> tuple[Places, Places]:
    """Return the runs of each part in which some of it is scored, from the first on: which part, and which run.

    Parts are counted as they end, run by run; `starts` says where the scored tokens of each begin.
    """
    part, run = np.arange(len(starts)), np.repeat(np.arange(len(forest.parents)), forest.counts)
    found = [(part, run)]
    while len(part):
        goes_on = (forest.begins[run] > starts[part]) & (forest.parents[run] >= 0)
        part, run = part[goes_on], forest.parents[run[goes_on]]
        found.append((part, run))
    part, run = (np.concatenate(one) for one in zip(*reversed(found), strict=True))
    order = np.argsort(part, kind="stable")
    return part[order], run[order]


def _taken(tokens: Ids, begins: Places, counts: Places) -> Ids:
    """Return pieces of tokens end to end."""
    pieces = zip(begins.tolist(), (begins + counts).tolist(), strict=True)
    # As bytes, which are put together in half the time that as many arrays take.
    held = tokens.data
    return np.frombuffer(bytearray().join([held[begin:end] for begin, end in pieces]), tokens.dtype)


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
