"""Trees as arrays and the rows laid of them, against the same done token by token."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ensue.models.request import TokenPart
from ensue.scoring.causal import NO_SHARING
from ensue.scoring.forest import grow_forest
from ensue.scoring.rows import make_rows
from ensue.scoring.tree import build_tree


class Run(NamedTuple):
    parent: int | None
    begin: int
    end: int
    text: list[int]
    scored_from: int
    ends: list[int]
    children: list[int]


def naive_tree(texts: Sequence[list[int]], starts: Sequence[int], min_run: int, min_saved: int) -> list[Run]:
    """Divide texts by their next token, over and over."""
    runs: list[Run] = []

    def parted(group: list[int]) -> tuple[int, list[int], list[list[int]]]:
        depth = next(
            d
            for d in range(999)
            if len({tuple(texts[i][: d + 1]) for i in group}) > 1 or d == len(texts[group[0]])
        )
        ended = [i for i in group if len(texts[i]) == depth]
        further = [list(some) for _, some in groupby(group[len(ended) :], key=lambda i: texts[i][depth])]
        return depth, ended, further

    def is_one(group: list[int], base: int) -> bool:
        """Whether a group begins with one run; `base` is where the last one ends that others branch off."""
        depth, ended, further = parted(group)
        if not further:
            return True
        if depth - base < min_run:
            return False
        if ended and len(further) == 1:
            return is_one(further[0], base)
        return (depth - base) * (len(further) + bool(ended) - 1) >= min_saved

    def grow(group: list[int], parent: int | None, begin: int, base: int) -> None:
        depth, ended, further = parted(group)
        if not is_one(group, base):
            for some in [*further, ended]:
                if some:
                    grow(some, parent, begin, base)
            return
        number = len(runs)
        if parent is not None:
            runs[parent].children.append(number)
        scored_from = max(begin, min(starts[i] for i in group))
        runs.append(Run(parent, begin, depth, texts[group[0]], scored_from, ended, []))
        for some in further:
            grow(some, number, depth, base if ended and len(further) == 1 else depth)

    if texts:
        grow(sorted(range(len(texts)), key=lambda i: (texts[i], i)), None, 0, 0)
    return runs


def naive_rows(runs: list[Run], starts: Sequence[int], room: int) -> list[dict[str, Any]]:
    """Walk the trees and start a row wherever the next run does not fit."""

    def path(n: int) -> list[int]:
        parent = runs[n].parent
        return [*([] if parent is None else path(parent)), n]

    def below(n: int) -> list[int]:
        return [n, *(one for child in runs[n].children for one in below(child))]

    def fed(n: int) -> int:
        return runs[n].end - runs[n].begin - (not runs[n].children)

    roots = [n for n, run in enumerate(runs) if run.parent is None]
    roots.sort(key=lambda n: min(part for one in below(n) for part in runs[one].ends))
    rows: list[tuple[list[int], list[int]]] = []
    for n in (one for root in roots for one in below(root)):
        if not rows or sum(fed(one) for some in rows[-1] for one in some) + fed(n) > room:
            rows.append((path(n)[:-1], []))
        rows[-1][1].append(n)
    return [naive_row(runs, starts, repeated, own, path, below, fed) for repeated, own in rows]


def naive_row(
    runs: list[Run],
    starts: Sequence[int],
    repeated: list[int],
    own: list[int],
    path: Any,
    below: Any,
    fed: Any,
) -> dict[str, Any]:
    """Lay runs token by token."""
    laid = [(n, runs[n].begin + offset) for n in [*repeated, *own] for offset in range(fed(n))]
    asked = [(n, place) for n in [*repeated, *own] for place in range(runs[n].scored_from, runs[n].end)]

    def on(n: int, position: int) -> tuple[int, int]:
        """Return which run of a path has a position, and the position."""
        return next((one, position) for one in path(n) if runs[one].begin <= position < runs[one].end)

    return {
        "ids": [runs[n].text[position] for n, position in laid],
        "positions": [position for _, position in laid],
        "ends": [1 + max(i for i, (one, _) in enumerate(laid) if one in below(n)) for n, _ in laid],
        "states": [laid.index(on(n, position - 1)) for n, position in asked],
        "targets": [runs[n].text[position] for n, position in asked],
        "read": [
            (part, [asked.index(on(n, position)) for position in range(starts[part], runs[n].end)])
            for n in own
            for part in runs[n].ends
        ],
    }


# Some begin with as many tokens alike as a window has, or go on from each other.
beginnings = st.sampled_from([0, 1, 7, 15, 16, 17, 80])
drawn_texts = st.lists(
    st.tuples(beginnings, st.lists(st.integers(0, 2), min_size=2, max_size=20), st.integers(0, 99)),
    max_size=14,
)


def as_parts(drawn: list[tuple[int, list[int], int]]) -> list[TokenPart]:
    texts = [[2] * alike + rest for alike, rest, _ in drawn]
    return [
        TokenPart(np.asarray(text, np.int32), 1 + start % (len(text) - 1))
        for text, (_, _, start) in zip(texts, drawn, strict=True)
    ]


limits = st.sampled_from([(8, 32), (1, 1), (3, 5), (NO_SHARING, 32)])


@given(drawn_texts, limits, st.integers(1, 200))
@example([], (8, 32), 64)
@example([(80, [0, 1], 0), (80, [0, 1], 5), (80, [2, 2], 0), (0, [2, 2], 0), (0, [2, 2, 1], 0)], (8, 32), 90)
# Texts that end where others go on, with too little for a run of its own: they come after those.
@example([(0, [1, 1], 0), (0, [1, 1, 1], 0), (0, [1, 1, 1, 0], 0), (0, [1, 2], 0)], (8, 32), 5)
@example([(0, [0, 0], 0), (0, [0, 0, 1], 0), (0, [1] * 7, 0), (0, [1] * 6 + [2], 0)], (3, 5), 64)
# A text that two others go on from is branched where that saves enough, one that a single other goes on from always.
@example([(8, [1, 2], 0), (8, [1, 2, 0], 0), (8, [1, 2, 1, 1], 0)], (8, 32), 64)
@example([(8, [1, 2], 0), (8, [1, 2, 0], 0), (0, [1, 1], 0)], (8, 32), 64)
# A text that two others go on from, which part too early for a run of their own; one that a run goes on from.
@example([(0, [1] * 8, 0), (0, [1] * 9 + [0, 0], 0), (0, [1] * 9 + [2, 2], 0)], (8, 32), 64)
@example([(16, [1, 1], 0), *((16, [1, 1, 1, n, 0], 0) for n in range(3))], (8, 32), 64)
# Rows that are full to the last token, one more of which nothing is fed.
@example([(0, [0, 1, 1], 0), (0, [1, 1, 1], 0), (0, [2, 1, 1], 0)], (8, 32), 4)
@example([(80, [1, 0], 0), (80, [1, 1], 0), (80, [1, 2], 0)], (8, 32), 81)
def test_trees_and_rows_are_those_of_a_plain_walk(
    drawn: list[tuple[int, list[int], int]], least: tuple[int, int], room: int
) -> None:
    parts = as_parts(drawn)
    texts, starts = [part.ids.tolist() for part in parts], [part.start for part in parts]
    runs = naive_tree(texts, starts, *least)
    nodes = build_tree(parts, min_run=least[0], min_saved=least[1])
    assert [
        Run(n.parent, n.begin, n.end, n.ids.tolist(), n.scored_from, n.ends, n.children) for n in nodes
    ] == runs
    assert [node.index for node in nodes] == list(range(len(runs)))
    forest = grow_forest(parts, min_run=least[0], min_saved=least[1])
    assert forest.size == sum(run.end - run.begin for run in runs)
    found = []
    for row in make_rows(forest, room):
        arrays = {name: getattr(row, name) for name in ("ids", "positions", "ends", "states", "targets")}
        assert {one.dtype for one in arrays.values()} == {np.dtype(np.int32)}
        read = [(part, asked.tolist()) for part, asked in row.pieces.of(np.arange(len(row.targets)))]
        assert row.pieces.parts == [part for part, _ in read]
        found.append({name: one.tolist() for name, one in arrays.items()} | {"read": read})
    assert found == naive_rows(runs, starts, room)
