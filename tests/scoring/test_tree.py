"""The prefix tree and the plan over it, as properties of random sets of sequences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.models.request import TokenPart
from ensue.scoring.plan import Budget, cache_peak, make_plan, needed_steps
from ensue.scoring.probe import find_causal_way
from ensue.scoring.tree import (
    Node,
    build_tree,
    common_prefix,
    lay_branches,
    merge_spines,
    pack_leaves,
    split_long,
)
from tests.scoring.networks import network
from tests.scoring.test_causal import ROOMY, trees

# Few distinct tokens, so that long prefixes are shared by chance.
sequences = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=24), min_size=1, max_size=16)
thresholds = st.tuples(st.integers(1, 9), st.integers(1, 40))
budgets = st.builds(
    Budget,
    batch=st.integers(4, 64),
    full=st.integers(1, 32),
    cache=st.integers(1, 64),
    attended=st.integers(8, 256),
)


def as_parts(rows: list[list[int]]) -> list[TokenPart]:
    return [TokenPart(np.asarray(row, dtype=np.int32), 1 + i % (len(row) - 1)) for i, row in enumerate(rows)]


def path(nodes: list[Node], index: int | None) -> list[Node]:
    found: list[Node] = []
    while index is not None:
        found.insert(0, nodes[index])
        index = nodes[index].parent
    return found


@given(sequences, thresholds, st.integers(8, 40), st.booleans())
def test_runs_that_go_on_spell_the_same_parts(
    rows: list[list[int]], limits: tuple[int, int], longest: int, branch: bool
) -> None:
    parts = as_parts(rows)
    built = split_long(build_tree(parts, min_run=limits[0], min_saved=limits[1]), longest)
    apart = pack_leaves(built, parts, branch=branch, row=8)
    nodes = merge_spines(apart, longest)
    assert sorted(part for node in nodes for part in node.ends) == list(range(len(parts)))
    assert len(nodes) <= len(apart)
    for node in nodes:
        assert node.length <= longest or node.pack is not None
        above = path(nodes, node.index)
        for one, child in pairwise(above):
            assert child.parent == one.index < child.index
            assert child.index in one.children
            assert one.begin < child.begin <= one.end
        if node.pack is None:
            for part in node.ends:
                borders = [n.begin for n in above] + [len(rows[part])]
                pieces = [n.ids[a:b] for n, (a, b) in zip(above, pairwise(borders), strict=True)]
                assert np.concatenate(pieces).tolist() == rows[part]
                start = parts[part].start
                assert all(
                    n.scored_from <= max(a, start)
                    for n, (a, b) in zip(above, pairwise(borders), strict=True)
                    if start < b  # of this run something is scored for the part
                )


@given(sequences, thresholds, st.integers(4, 40))
def test_rows_of_branches_ask_for_every_part_after_its_own_past(
    rows: list[list[int]], limits: tuple[int, int], room: int
) -> None:
    parts = as_parts(rows)
    tree = pack_leaves(build_tree(parts, min_run=limits[0], min_saved=limits[1]), parts, branch=True, row=8)
    apart = merge_spines(tree, 8192)
    nodes = lay_branches(apart, parts, room)
    assert sorted(part for node in nodes for part in node.ends) == list(range(len(parts)))
    for node in nodes:
        assert all(nodes[child].parent == node.index < child for child in node.children)
        if node.parent is not None:
            assert node.index in nodes[node.parent].children
        pack = node.pack
        if pack is None or pack.past is None:
            continue
        assert len(pack.ids) <= room or len(set(pack.begins.values())) == 1
        run = nodes[node.parent].ids  # type: ignore[index] - rows branch off a run
        for part in node.ends:
            ids, start, begin = parts[part].ids.tolist(), parts[part].start, pack.begins[part]
            asked = [pack.wanted[i] for i in pack.of[part]]
            assert [token for _, token in asked] == ids[max(start, begin) :]
            for position, (place, _) in zip(range(max(start, begin), len(ids)), asked, strict=True):
                if place < 0:
                    assert -place == begin == position
                    assert run[:begin].tolist() == ids[:begin]
                    continue
                seen = np.flatnonzero(pack.seen[place])
                assert run[: pack.past[place]].tolist() + pack.ids[seen].tolist() == ids[:position]
                assert pack.positions[seen].tolist() == list(range(begin, position))


def test_branches_of_different_places_are_one_row() -> None:
    text = np.arange(900, dtype=np.int32)
    tail = np.arange(9, dtype=np.int32)
    ends = range(100, 350, 50)
    parts = [TokenPart(text, 1)]
    parts += [TokenPart(np.concatenate([text[:end], 2000 + end + tail]), end) for end in ends]
    apart = merge_spines(pack_leaves(build_tree(parts), parts, branch=True), 8192)
    assert len(apart) == 6
    spine, row = lay_branches(apart, parts, 512)
    assert (spine.ends, spine.children) == ([0], [1])
    # The last token of each is only asked about, so it is not fed.
    assert (row.begin, row.length, sorted(row.all_begins)) == (300, 5 * 8, list(ends))
    narrow = lay_branches(apart, parts, 24)
    assert [node.length for node in narrow[1:]] == [24, 16]


def test_a_text_that_is_branched_off_after_every_sentence_is_one_run() -> None:
    text = np.arange(400, dtype=np.int32)
    parts = [TokenPart(text, 1)]
    ends, tail = range(10, 320, 10), np.arange(80, dtype=np.int32)
    parts += [TokenPart(np.concatenate([text[:end], 1000 + end + tail]), end) for end in ends]
    nodes = merge_spines(build_tree(parts, min_run=1, min_saved=1), 8192)
    assert (nodes[0].begin, nodes[0].end, nodes[0].ends) == (0, 400, [0])
    assert [node.parent for node in nodes[1:]] == [0] * 31
    assert sorted(node.begin for node in nodes[1:]) == list(ends)
    steps = make_plan(nodes, Budget(batch=1024, full=256, cache=10_000, attended=100_000, run=8192))
    assert steps[0].nodes == (0,)
    assert len(steps) == 4  # the text, then 31 times 80 tokens in batches of 1,024


@given(sequences, thresholds, st.integers(1, 30))
def test_every_part_is_spelled_by_exactly_one_path(
    rows: list[list[int]], limits: tuple[int, int], longest: int
) -> None:
    parts = as_parts(rows)
    nodes = split_long(build_tree(parts, min_run=limits[0], min_saved=limits[1]), longest)
    ended = [part for node in nodes for part in node.ends]
    assert sorted(ended) == list(range(len(parts)))
    for node in nodes:
        assert 0 < node.length <= longest
        above = path(nodes, node.index)
        assert [n.begin for n in above] == [0, *(n.end for n in above[:-1])]
        for part in node.ends:
            assert np.concatenate([n.tokens for n in above]).tolist() == rows[part]
            # Whatever the part wants scored, each node on its path will score.
            assert all(n.scored_from <= max(n.begin, parts[part].start) for n in above)


@given(sequences)
def test_full_sharing_computes_each_distinct_prefix_once(rows: list[list[int]]) -> None:
    nodes = build_tree(as_parts(rows), min_run=1, min_saved=1)
    distinct = {tuple(row[: i + 1]) for row in rows for i in range(len(row))}
    assert sum(node.length for node in nodes) == len(distinct)


@given(sequences, thresholds)
def test_sharing_never_computes_more_than_not_sharing(rows: list[list[int]], limits: tuple[int, int]) -> None:
    nodes = build_tree(as_parts(rows), min_run=limits[0], min_saved=limits[1])
    assert sum(node.length for node in nodes) <= sum(map(len, rows))


@given(sequences, budgets)
@settings(max_examples=200)
def test_the_plan_runs_each_node_once_after_its_parent_and_frees_what_it_kept(
    rows: list[list[int]], budget: Budget
) -> None:
    nodes = split_long(build_tree(as_parts(rows), min_run=1, min_saved=1), budget.batch)
    steps = make_plan(nodes, budget)
    assert sorted(i for step in steps for i in step.nodes) == list(range(len(nodes)))
    cached: set[int] = set()
    held = 0
    for step in steps:
        for index in step.nodes:
            assert all(n.index in cached for n in path(nodes, nodes[index].parent))
        width = max(nodes[i].length for i in step.nodes)
        assert len(step.nodes) == 1 or len(step.nodes) * width <= budget.batch
        cached |= {i for i in step.nodes if nodes[i].children}
        held = max(held, sum(nodes[i].length for i in cached))
        assert cached >= set(step.free)
        cached -= set(step.free)
    assert not cached
    assert held == cache_peak(nodes, steps)


@given(sequences, budgets, st.data())
def test_what_is_known_is_left_out_and_all_else_still_runs(
    rows: list[list[int]], budget: Budget, data: st.DataObject
) -> None:
    nodes = build_tree(as_parts(rows), min_run=1, min_saved=1)
    steps = make_plan(nodes, budget)
    done = set(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    needed = needed_steps(nodes, steps, done)
    ran = {i for step, wanted in zip(steps, needed, strict=True) if wanted for i in step.nodes}
    for index in ran:
        assert {n.index for n in path(nodes, index)} <= ran
    assert {part for i in ran for part in nodes[i].ends} >= set(range(len(rows))) - done
    if done == set(range(len(rows))):
        assert not any(needed)


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    found = common_prefix(np.asarray(a, dtype=np.int32), np.asarray(b, dtype=np.int32))
    assert a[:found] == b[:found]
    assert found == min(len(a), len(b)) or a[found] != b[found]


def part(*ids: int, start: int = 1) -> TokenPart:
    return TokenPart(np.asarray(ids, dtype=np.int32), start)


@pytest.mark.parametrize(
    ("family", "packs"),
    [("llama", True), ("gpt2", True), ("gemma3", False), ("gemma2", False), ("mamba", False)],
)
def test_only_models_that_a_mask_can_tell_what_to_see_pack(family: str, packs: bool) -> None:
    """A layer that looks back only so far would look past what lies between."""
    assert find_causal_way(network(family)).plain(network(family), ROOMY).pack == packs


def test_two_choices_after_a_premise_are_one_row() -> None:
    """Premise 1 2 3, choices 4 5 and 6 7: of the seven tokens the last of each choice is only asked about."""
    parts = [part(1, 2, 3, 4, 5, start=3), part(1, 2, 3, 6, 7, start=3)]
    (node,) = pack_leaves(build_tree(parts), parts, branch=True)
    assert node.pack is not None
    assert node.pack.ids.tolist() == [1, 2, 3, 4, 6]
    assert node.pack.positions.tolist() == [0, 1, 2, 3, 3]
    assert node.pack.seen[4].tolist() == [True, True, True, False, True]
    assert node.pack.branches
    # Asked for: 4 and 6 after the 3, 5 after the 4, 7 after the 6.
    assert {node.pack.wanted[i] for i in node.pack.of[0]} == {(2, 4), (3, 5)}
    assert {node.pack.wanted[i] for i in node.pack.of[1]} == {(2, 6), (4, 7)}


def test_without_a_mask_only_what_goes_on_shares_a_row() -> None:
    parts = [part(1, 2, 3), part(1, 2, 3, 4, 5), part(1, 9)]
    rows = [node.pack for node in pack_leaves(build_tree(parts), parts, branch=False)]
    assert all(row is not None and not row.branches for row in rows)
    assert sorted(sorted(row.of) for row in rows if row is not None) in ([[0, 1], [2]], [[0, 1, 2]])


@settings(max_examples=200, deadline=None)
@given(parts=trees())
def test_every_part_is_asked_whole_and_nothing_is_fed_twice_over(parts: list[TokenPart]) -> None:
    for branch in (True, False):
        tree = build_tree(parts)
        before = sum(node.length for node in tree)
        nodes = pack_leaves(tree, parts, branch=branch)
        assert sorted(end for node in nodes for end in node.ends) == list(range(len(parts)))
        assert sum(node.length for node in nodes) <= before
        for index, node in enumerate(nodes):
            assert node.index == index
            assert node.parent is None or node.parent < index
            if node.pack is None:
                continue
            for end, places in node.pack.of.items():
                one = parts[end]
                tokens = [node.pack.wanted[place][1] for place in places]
                assert tokens == one.ids[max(one.start, node.begin) :].tolist()


def nodes_of(parts: list[TokenPart], **limits: int) -> list[tuple[int | None, int, int, list[int]]]:
    return [(node.parent, node.begin, node.end, node.ends) for node in build_tree(parts, **limits)]


def run(stem: list[int], *tails: list[int], start: int = 1) -> list[TokenPart]:
    return [part(*stem, *tail, start=start) for tail in tails]


def test_a_shared_run_is_a_node_from_eight_tokens_and_thirty_two_saved_on() -> None:
    stem = list(range(8))
    five = [[10 + n] for n in range(5)]
    # Eight tokens that four more need save thirty-two.
    assert nodes_of(run(stem, *five)) == [(None, 0, 8, []), *((0, 8, 9, [n]) for n in range(5))]
    assert [node[0] for node in nodes_of(run(stem, *five[:4]))] == [None] * 4
    assert [node[0] for node in nodes_of(run(stem[:7], *([10 + n] for n in range(9))))] == [None] * 9
    two = run(list(range(32)), [40], [41])
    assert nodes_of(two) == [(None, 0, 32, []), (0, 32, 33, [0]), (0, 32, 33, [1])]
    assert [node[0] for node in nodes_of(run(list(range(31)), [40], [41]))] == [None, None]
    # A part that ends where others go on counts as one that needs the run.
    assert nodes_of([part(*range(32)), part(*range(33))]) == [(None, 0, 32, [0]), (0, 32, 33, [1])]
    assert build_tree([]) == []


def test_what_is_scored_of_a_shared_run_begins_where_the_first_part_wants() -> None:
    parts = [part(*range(32), 40, start=20), part(*range(32), 41, start=10), part(*range(32), 42, start=33)]
    found = build_tree(parts[:2])
    assert [node.scored_from for node in found] == [10, 32, 32]
    assert [node.tokens.tolist() for node in found] == [list(range(32)), [40], [41]]
    (alone,) = build_tree(parts[2:])
    assert (alone.scored_from, alone.ends) == (33, [0])


def test_long_runs_are_cut_into_chains_of_the_limit() -> None:
    parts = run(list(range(40)), [50, 51, 52], [60], start=5)
    cut = split_long(build_tree(parts), 16)
    assert [(n.index, n.parent, n.begin, n.end, n.scored_from, n.ends, n.children) for n in cut] == [
        (0, None, 0, 16, 5, [], [1]),
        (1, 0, 16, 32, 16, [], [2]),
        (2, 1, 32, 40, 32, [], [3, 4]),
        (3, 2, 40, 43, 40, [0], []),
        (4, 2, 40, 41, 40, [1], []),
    ]
    late = split_long(build_tree([part(*range(20), start=18)]), 8)
    assert [(n.begin, n.end, n.scored_from) for n in late] == [(0, 8, 8), (8, 16, 16), (16, 20, 18)]
    whole = build_tree(parts)
    assert split_long(whole, 40) is whole


def packed(parts: list[TokenPart], **how: Any) -> list[tuple[int | None, int, int, list[int] | None]]:
    """Parents, places and the parts of each row; None where nothing was packed."""
    found = pack_leaves(build_tree(parts), parts, **{"branch": True, **how})
    return [
        (node.parent, node.begin, node.end, None if node.pack is None else sorted(node.pack.of))
        for node in found
    ]


def test_rows_hold_what_fits_and_half_as_long_a_leaf_at_most() -> None:
    """The last token of a part is only asked about: parts of five take four places."""
    parts = [part(10 * n, 1, 2, 3, 4) for n in range(1, 5)]
    assert packed(parts, row=8) == [(None, 0, 8, [0, 1]), (None, 0, 8, [2, 3])]
    assert packed(parts, row=15) == [(None, 0, 12, [0, 1, 2]), (None, 0, 4, [3])]
    assert packed(parts, row=16) == [(None, 0, 16, [0, 1, 2, 3])]
    assert packed(parts, row=7) == [(None, 0, 5, None)] * 4
    # Of two that begin alike the second adds what it does not share.
    alike = [part(1, 2, 3, 4, 5), part(1, 2, 3, 9, 9), part(1, 2, 3, 4, 6)]
    assert packed(alike, row=8) == [(None, 0, 5, [0, 1, 2])]


def test_leaves_of_one_parent_lie_side_by_side_after_it() -> None:
    stem = list(range(40))
    parts = [*run(stem, [50, 51], [60, 61], [70]), *run([99, *stem], [50], [60])]
    assert packed(parts, row=8) == [
        (None, 0, 40, None),
        (0, 40, 42, [0, 1, 2]),
        (None, 0, 41, None),
        (2, 41, 41, [3, 4]),
    ]
    found = pack_leaves(build_tree(parts), parts, branch=True, row=8)
    assert [node.children for node in found] == [[1], [], [3], []]
    first = found[1].pack
    assert first is not None
    assert (first.ids.tolist(), first.positions.tolist()) == ([50, 60], [40, 40])
    assert first.seen.tolist() == [[True, False], [False, True]]
    # Before the row stands the stem: its last state tells the first token of each.
    assert [first.wanted[i] for i in first.of[0]] == [(-40, 50), (0, 51)]
    assert [first.wanted[i] for i in first.of[2]] == [(-40, 70)]
    second = found[3].pack
    assert second is not None
    assert (second.ids.size, second.wanted, second.branches) == (0, [(-41, 50), (-41, 60)], False)


def test_a_text_scored_from_its_first_token_is_not_packed() -> None:
    assert packed([part(1, 2, 3, start=0), part(4, 5, 6)], row=8) == [(None, 0, 2, [1]), (None, 0, 3, None)]


def test_without_a_mask_only_chains_share_a_row() -> None:
    parts = [part(1, 2, 3), part(1, 2, 3, 4, 5), part(1, 2, 3, 4), part(1, 9, 9), part(1, 2, 3, 4, 5)]
    rows = packed(parts, branch=False)
    assert rows == [(None, 0, 4, [0, 1, 2, 4]), (None, 0, 2, [3])]
    for node in pack_leaves(build_tree(parts), parts, branch=False):
        assert node.pack is not None
        assert not node.pack.branches
        assert node.pack.seen.tolist() == np.tri(node.length, dtype=bool).tolist()


def test_a_run_goes_on_to_what_leads_furthest_and_is_scored_where_that_is_asked() -> None:
    text, other = np.arange(900, dtype=np.int32), np.arange(1000, 1300, dtype=np.int32)
    parts = [TokenPart(np.concatenate([text[:300], text[:1], other]), 600), TokenPart(text, 850)]
    spine, branch = merge_spines(split_long(build_tree(parts), 301), 8192)
    assert (spine.end, spine.ends, spine.scored_from) == (900, [1], 850)
    assert (branch.begin, branch.end, branch.ends) == (300, 601, [0])
