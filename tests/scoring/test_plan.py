"""Which nodes run together and what is kept of them, worked by hand on small trees."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.errors import RunFailed
from ensue.scoring.plan import Budget, Step, cache_peak, make_plan, needed_steps
from ensue.scoring.tree import Node, build_tree
from tests.scoring.test_tree import as_parts, budgets, path, sequences


def tree(*rows: tuple[int | None, int]) -> list[Node]:
    """A tree of (parent, length), parents first; every leaf ends a part of its own number."""
    nodes: list[Node] = []
    for index, (parent, length) in enumerate(rows):
        begin = 0 if parent is None else nodes[parent].end
        nodes.append(Node(index, parent, begin, begin + length, np.zeros(99, np.int32), begin))
        if parent is not None:
            nodes[parent].children.append(index)
    for node in nodes:
        node.ends = [] if node.children else [node.index]
    return nodes


def leaves(*lengths: int) -> list[Node]:
    return tree(*((None, length) for length in lengths))


def plan(nodes: list[Node], **room: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    budget = Budget(**{"batch": 100, "full": 100, "cache": 100, "attended": 1000} | room)
    return [(step.nodes, step.free) for step in make_plan(nodes, budget)]


def test_half_a_budget_is_half_of_everything(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert Budget(100, 50, 61, 400, 30).halved() == Budget(50, 25, 30, 200, 15)
    assert caplog.messages == ["out of memory: batch budget 100 -> 50 tokens"]
    assert Budget(33, 1, 1, 9).halved() == Budget(16, 1, 0, 4, 0)
    for batch in (32, 1):
        with pytest.raises(RunFailed, match="smallest batch; finished scores are kept"):
            Budget(batch, 50, 60, 400).halved()


def test_one_row_may_be_longer_than_a_batch_of_several() -> None:
    assert Budget(100, 50, 60, 400).run == 0
    assert Budget(100, 50, 60, 400).longest_run == 100
    assert Budget(100, 50, 60, 400, 300).longest_run == 300


@pytest.mark.parametrize(
    ("lengths", "room", "batches"),
    [
        ((5, 9, 7), {}, [(1, 2, 0)]),
        # Three rows of ten fill thirty, and of eleven do not.
        ((10, 10, 10), {"batch": 30}, [(0, 1, 2)]),
        ((11, 10, 10), {"batch": 30}, [(0, 1), (2,)]),
        ((10, 10, 10), {"attended": 30}, [(0, 1, 2)]),
        ((11, 10, 10), {"attended": 30}, [(0, 1), (2,)]),
        # A row longer than any batch runs alone.
        ((40, 40, 3), {"batch": 30}, [(0,), (1,), (2,)]),
        # Once there are twenty tokens, a row below nine tenths of the longest begins a batch.
        ((10, 10, 9, 8), {"full": 20}, [(0, 1, 2), (3,)]),
        ((10, 10, 9, 8), {"full": 21}, [(0, 1, 2), (3,)]),
        ((10, 9, 8), {"full": 21}, [(0, 1, 2)]),
        ((10, 8, 7), {"full": 8}, [(0,), (1,), (2,)]),
        ((10, 8, 8), {"full": 10}, [(0,), (1, 2)]),
    ],
)
def test_rows_of_like_length_run_together_longest_first(
    lengths: tuple[int, ...], room: dict[str, int], batches: list[tuple[int, ...]]
) -> None:
    assert plan(leaves(*lengths), **room) == [(batch, ()) for batch in batches]


def test_of_equal_rows_those_further_down_come_first() -> None:
    nodes = tree((None, 2), (0, 5), (None, 9), (2, 5), (2, 6))
    assert plan(nodes) == [((2, 0), ()), ((4, 3, 1), (0, 2))]
    assert plan(nodes, attended=30)[1:] == [((4, 3), ()), ((1,), (0, 2))]
    assert plan(nodes, attended=29)[1:] == [((4,), ()), ((3, 1), (0, 2))]


def test_what_is_attended_to_counts_from_the_beginning_of_the_text() -> None:
    nodes = tree((None, 20), (0, 5), (0, 5), (0, 5))
    assert plan(nodes, attended=75) == [((0,), ()), ((1, 2, 3), (0,))]
    assert plan(nodes, attended=74) == [((0,), ()), ((1, 2), ()), ((3,), (0,))]


def test_subtrees_that_fit_the_cache_together_run_level_by_level() -> None:
    two = tree((None, 10), (None, 20), (0, 1), (0, 2), (1, 3), (1, 4))
    assert plan(two, cache=30) == [((1, 0), ()), ((5, 4, 3, 2), (0, 1))]
    # One token less, and one subtree runs after the other.
    assert plan(two, cache=29) == [((0,), ()), ((3, 2), (0,)), ((1,), ()), ((5, 4), (1,))]
    three = tree((None, 10), (None, 10), (None, 10), (0, 1), (1, 1), (2, 1))
    assert plan(three, cache=20) == [((0, 1), ()), ((3, 4), (0, 1)), ((2,), ()), ((5,), (2,))]


def test_a_subtree_too_large_for_the_cache_runs_its_root_and_then_its_children() -> None:
    nodes = tree((None, 10), (0, 20), (0, 30), (1, 1), (1, 2), (2, 3), (2, 4), (0, 5))
    assert plan(nodes, cache=59) == [
        ((0,), ()),
        ((1,), ()),
        ((4, 3), (1,)),
        ((2, 7), ()),
        ((6, 5), (2, 0)),
    ]
    # An eighth of the cache is always there, however much a root takes up.
    deep = tree((None, 100), (0, 8), (0, 8), (1, 1), (2, 1))
    assert plan(deep, cache=64, batch=200) == [
        ((0,), ()),
        ((1,), ()),
        ((3,), (1,)),
        ((2,), ()),
        ((4,), (2, 0)),
    ]
    # All 116 tokens of the three fit.
    assert plan(deep, cache=116, batch=200) == [((0,), ()), ((1, 2), ()), ((3, 4), (0, 1, 2))]
    assert plan(deep, cache=115, batch=200) == plan(deep, cache=64, batch=200)


def test_the_cache_holds_what_something_branches_from() -> None:
    nodes = tree((None, 10), (None, 20), (0, 1), (0, 2), (1, 3), (1, 4))
    steps = [Step((0,), ()), Step((2, 3), (0,)), Step((1,), ()), Step((4, 5), (1,))]
    assert cache_peak(nodes, steps) == 20
    assert cache_peak(nodes, [Step((0, 1), ()), Step((2, 3, 4, 5), (0, 1))]) == 30
    assert cache_peak(nodes, []) == 0


def naive_needed(nodes: Sequence[Node], steps: Sequence[Step], done: set[int]) -> list[bool]:
    """Grow the set of steps until every node that is wanted has run, with all it branches from."""
    wanted = {node.index for node in nodes if set(node.ends) - done}
    while True:
        needed = [bool(wanted & set(step.nodes)) for step in steps]
        ran = {i for step, yes in zip(steps, needed, strict=True) if yes for i in step.nodes}
        more = {node.index for i in ran for node in path(list(nodes), i)}
        if more <= wanted:
            return needed
        wanted |= more


@given(sequences, budgets, st.data())
@settings(deadline=None)
def test_no_step_runs_that_nothing_wants(rows: list[list[int]], budget: Budget, data: st.DataObject) -> None:
    nodes = build_tree(as_parts(rows), min_run=1, min_saved=1)
    steps = make_plan(nodes, budget)
    done = set(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    assert needed_steps(nodes, steps, done) == naive_needed(nodes, steps, done)


@given(sequences, budgets)
def test_the_cache_is_over_its_room_only_by_what_one_path_needs(
    rows: list[list[int]], budget: Budget
) -> None:
    nodes = build_tree(as_parts(rows), min_run=1, min_saved=1)
    inner = {node.index for node in nodes if node.children}
    longest = max(
        (sum(n.length for n in path(nodes, node.index) if n.index in inner) for node in nodes), default=0
    )
    assert cache_peak(nodes, make_plan(nodes, budget)) <= longest + max(budget.cache, budget.cache // 8)


def test_a_short_row_far_into_its_text_counts_with_all_that_it_attends_to() -> None:
    """Rows come longest first; a later one may attend to more than those before it."""
    ends = [(10, 10), (10, 10), (9, 90)]
    nodes = [
        Node(i, None, end - length, end, np.zeros(end, np.int32), end) for i, (length, end) in enumerate(ends)
    ]
    budget = Budget(batch=1000, full=1000, cache=1000, attended=120)
    steps = make_plan(nodes, budget)
    assert [step.nodes for step in steps] == [(0, 1), (2,)]
