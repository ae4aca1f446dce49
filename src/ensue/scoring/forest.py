"""The prefix trees of token sequences as arrays: which runs of tokens they share, with no object for any of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.models.request import TokenPart
from ensue.scoring.prefixes import Ids, Places, in_order


@dataclass(frozen=True, slots=True, eq=False)
class Forest:
    """Runs of tokens, each of which branches off the end of its parent; parents come before children, tree by tree.

    Run n has the positions `begins[n]` to `ends[n]` of a text that lies in `tokens` from `sources[n]` on; its parent
    is -1 where it begins the text. `scored_from[n]` is the first position in it that any part through it wants to
    have scored. The parts that end in it are the `counts[n]` from `parts[firsts[n]]` on; the first of these goes
    through it even where none ends there. `starts[i]` is where the scored tokens of part i begin.
    """

    tokens: Ids
    starts: Places
    parts: Places
    sources: Places
    firsts: Places
    counts: Places
    parents: Places
    begins: Places
    ends: Places
    scored_from: Places

    @property
    def size(self) -> int:
        """How many tokens all runs have together."""
        return int((self.ends - self.begins).sum())

    @property
    def ending(self) -> Places:
        """The parts, run by run in which they end."""
        found: Places = self.parts[counting_up(self.firsts, self.counts)]
        return found

    def reordered(self, order: Places) -> Forest:
        """Return the runs in another order."""
        numbers = np.full(len(order) + 1, -1)
        numbers[order] = np.arange(len(order))
        names = ("sources", "firsts", "counts", "begins", "ends", "scored_from")
        return replace(
            self, parents=numbers[self.parents[order]], **{name: getattr(self, name)[order] for name in names}
        )


def grow_forest(parts: Sequence[TokenPart], *, min_run: int = 8, min_saved: int = 32) -> Forest:
    """Find what parts share.

    A shared run is one of its own when it has at least `min_run` tokens and saves at least `min_saved`; others are
    cheaper to compute again than to branch from. So is a whole text, whatever it saves, that one other text or one
    run goes on from: nothing branches there.
    """
    found = in_order([part.ids for part in parts])
    starts = np.fromiter([part.start for part in parts], np.int64, len(parts))
    # Equal parts are one text.
    sizes = found.lengths[found.places]
    fresh = found.shared < sizes
    fresh[:1] = True
    firsts = np.flatnonzero(fresh)
    counts, lengths = np.diff(firsts, append=len(parts)), sizes[firsts]
    earliest = np.minimum.reduceat(starts[found.places], firsts)
    runs, above, late = _shared_runs(found.shared[firsts], lengths, min_run, min_saved)
    depths, lows, highs, parents = np.asarray(runs, np.int64).reshape(-1, 4).T

    # Each text ends in a shared run or in a leaf, its own run. At each text come in turn the leaves that are late,
    # the last one first, then the shared runs that begin with it, then its leaf.
    leaves = np.flatnonzero((above < 0) | (np.append(depths, 0)[above] < lengths))[::-1]
    turns = 3 * np.arange(len(lengths)) + 2
    turns[list(late)] = [3 * high for high in late.values()]
    order = np.argsort(np.append(3 * lows + 1, turns[leaves]), kind="stable")

    texts, parents = np.append(lows, leaves), np.append(parents, above[leaves])
    begins = np.append(depths, 0)[parents]
    wanted = np.minimum.reduceat(np.append(earliest, 0), np.stack([lows, highs], 1).ravel())[::2]
    return Forest(
        tokens=found.flat,
        starts=starts,
        parts=found.places,
        sources=found.begins[found.places[firsts[texts]]],
        firsts=firsts[texts],
        counts=np.append((lengths[lows] == depths) * counts[lows], counts[leaves]),
        parents=parents,
        begins=begins,
        ends=np.append(depths, lengths[leaves]),
        scored_from=np.maximum(begins, np.append(wanted, earliest[leaves])),
    ).reordered(order)


def _shared_runs(
    shared: Places, lengths: Places, min_run: int, min_saved: int
) -> tuple[list[tuple[int, int, int, int]], Places, dict[int, int]]:
    """Choose the shared runs of distinct texts in order, those above others before them.

    Returns the depth of each, from which text to which it is shared, and the run above it (-1: none); the run above
    each text; and for texts that end where others go on, in what is not worth a run, the text before which they come.
    """
    # What is shared by less than that is no run, and no text ends there.
    depths = np.where(shared < min(min_run, lengths.min(initial=min_run)), 0, shared)
    ends = lengths.tolist()
    branchings = _branchings(depths)
    worth = _worth(branchings, ends, min_run, min_saved)
    runs: list[tuple[int, int, int, int]] = []
    above = [-1] * len(ends)
    late: dict[int, int] = {}
    for (depth, low, high, _), is_run in zip(branchings, worth, strict=True):
        if is_run:
            runs.append((depth, low, high, above[low]))
            above[low:high] = [len(runs) - 1] * (high - low)
        elif ends[low] == depth:
            late[low] = high
    return runs, np.asarray(above, np.int64), late


def _worth(
    branchings: Sequence[tuple[int, int, int, int]], ends: Sequence[int], min_run: int, min_saved: int
) -> list[bool]:
    """Say which places where texts part are ends of runs, for what they save or because nothing branches there."""
    worth = [False] * len(branchings)
    goes_on: list[int] = []  # where a text ends and one other goes on
    around = [(0, -1)]  # the depth and the first text of the runs about a place that save enough
    for place, (depth, low, high, more) in enumerate(branchings):
        while around[-1][1] >= high:
            around.pop()
        run = depth - around[-1][0]
        if run < min_run:
            continue
        if more == 1 and ends[low] == depth:
            goes_on.append(place)
        elif run * more >= min_saved:
            worth[place] = True
            around.append((depth, low))
    # Where what goes on is one text or one run; if it parts, too early for a run, that were branching after all.
    whole = {one[1:3] for one, is_run in zip(branchings, worth, strict=True) if is_run}
    for place in reversed(goes_on):
        _, low, high, _ = branchings[place]
        if high - low == 2 or (low + 1, high) in whole:
            worth[place] = True
            whole.add((low, high))
    return worth


def _branchings(shared: Places) -> list[tuple[int, int, int, int]]:
    """Find where texts in order part, what lies above others before them: at which depth, from which text to which,
    and into how many more than one."""
    found: list[tuple[int, int, int, int]] = []
    begun = [(-1, 0, 0)]  # depth, first text, and how often they part there
    # Of places next to each other at which as much is shared, the first, and how many they are; then what ends all.
    changes = np.append(np.flatnonzero(np.diff(shared, prepend=-1)), len(shared))
    times = np.diff(changes, append=len(shared))
    commons = np.append(shared, -1)[changes]
    for place, common, more in zip(changes.tolist(), commons.tolist(), times.tolist(), strict=True):
        low = max(place - 1, 0)
        while begun[-1][0] > common:
            depth, low, count = begun.pop()
            found.append((depth, low, place, count))
        if begun[-1][0] == common:
            depth, low, count = begun.pop()
            more += count
        begun.append((common, low, more))
    return found[::-1]


def borders_of(counts: Places) -> Places:
    """Return where each of several pieces that lie end to end begins, and where the last ends."""
    borders = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=borders[1:])
    return borders


def counting_up(begins: Places, counts: Places, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Return numbers that count up from each of these, so many of each."""
    ends = np.cumsum(counts)
    found = np.repeat((begins - ends + counts).astype(dtype), counts)
    found += _steps(len(found).bit_length())[: len(found)]
    return found


@cache
def _steps(bits: int) -> Ids:
    """Return the numbers of so many bits; kept, as memory that is taken and given back each time takes longer."""
    return np.arange(1 << bits, dtype=np.int32)
