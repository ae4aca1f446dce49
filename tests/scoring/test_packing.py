"""Short continuations side by side in a row: what is fed, what is asked, and which models allow it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ensue.models.request import TokenPart
from ensue.scoring.packing import pack_leaves
from ensue.scoring.probe import probe_causal
from ensue.scoring.tree import build_tree
from tests.scoring.networks import network
from tests.scoring.test_causal import ROOMY, trees


def part(*ids: int, start: int = 1) -> TokenPart:
    return TokenPart(np.asarray(ids, dtype=np.int32), start)


@pytest.mark.parametrize(
    ("family", "packs"),
    [("llama", True), ("gpt2", True), ("gemma3", False), ("gemma2", False), ("mamba", False)],
)
def test_only_models_that_a_mask_can_tell_what_to_see_pack(family: str, packs: bool) -> None:
    """A layer that looks back only so far would look past what lies between."""
    assert probe_causal(network(family), ROOMY).pack == packs


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
