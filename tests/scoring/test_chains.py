"""Texts that go on from each other, among others: how many tokens are run, in how many passes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ensue.models.request import TokenPart
from ensue.scoring.causal import CausalExecutor
from ensue.scoring.forest import grow_forest
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.prefixes import Ids
from ensue.scoring.rows import make_rows
from tests.scoring.networks import VOCABULARY, network

BUDGET = Budget(batch=1024, full=256, cache=100_000, attended=16_384, run=8192)


def text(length: int, seed: int = 0) -> Ids:
    return np.random.default_rng(seed).integers(0, VOCABULARY, length, dtype=np.int32)


def chain(step: int, count: int, seed: int = 0) -> list[TokenPart]:
    whole = text(step * count, seed)
    return [TokenPart(whole[: step * (n + 1)], 1) for n in range(count)]


def fork(length: int, further: int, tail: int, count: int) -> list[TokenPart]:
    """A text, and several that part a few tokens after its end."""
    shared = text(length + further)
    tails = [np.concatenate([shared, [n], text(tail - 1, n + 1)]).astype(np.int32) for n in range(count)]
    return [TokenPart(shared[:length], 1), *(TokenPart(one, 1) for one in tails)]


def run(parts: Sequence[TokenPart]) -> tuple[int, int]:
    """Return how many tokens are run, and in how many passes."""
    fed: list[int] = []
    model = network("llama")
    hook = model.get_input_embeddings().register_forward_hook(
        lambda _, given, __: fed.append(given[0].numel())
    )
    try:
        for _ in CausalExecutor(Network(model), BUDGET, pack=True).run(parts):
            pass
    finally:
        hook.remove()
    return sum(fed), len(fed)


@pytest.mark.parametrize(
    ("parts", "tokens", "passes", "in_rows"),
    [
        # A text and what goes on from it: one row, one pass, whatever the first saves.
        (chain(20, 2), 39, 1, 39),
        (chain(33, 2), 65, 1, 65),
        (chain(8, 15), 119, 1, 119),
        # Many of them lie side by side.
        ([part for seed in range(40) for part in chain(10 + seed % 20, 2, seed)], 1600, 3, 1520),
        # What many texts share beyond the end of another is run once, not once for each.
        (fork(30, 7, 10, 20), 217, 2, 217),
        (fork(40, 7, 10, 20), 227, 2, 227),
        # What is not worth branching off stays whole.
        (fork(8, 4, 10, 2), 30, 1, 49),
    ],
)
def test_a_text_that_others_go_on_from_costs_no_branching(
    parts: list[TokenPart], tokens: int, passes: int, in_rows: int
) -> None:
    found, times = run(parts)
    assert times == passes
    assert found <= tokens
    assert sum(len(row.ids) for row in make_rows(grow_forest(parts), 4096)) == in_rows
