"""The search against every order there is."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.ordering.beam import Ask, search, set_and_last


def chain(matrix: np.ndarray, order: Sequence[int]) -> float:
    return sum(float(matrix[a, b]) for a, b in pairwise(order))


def by_pairs(matrices: Sequence[np.ndarray]):
    return lambda asked: [
        float(matrices[ask.number][ask.order[-1], ask.following]) if ask.order else 0.0 for ask in asked
    ]


@settings(max_examples=40)
@given(st.lists(st.integers(2, 6), min_size=1, max_size=3), st.integers(0, 10**6))
def test_a_wide_beam_finds_the_best_of_all_orders(counts: list[int], seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrices = [generator.normal(size=(count, count)) for count in counts]
    for state in ({}, {"state": set_and_last()}, {"state": set_and_last(2)}):
        found = search(counts, 1000, by_pairs(matrices), **state)
        for best, matrix, count in zip(found, matrices, counts, strict=True):
            values = {order: chain(matrix, order) for order in permutations(range(count))}
            assert best[0].value == pytest.approx(max(values.values()))
            assert values[best[0].order] == pytest.approx(best[0].value)
            assert [one.value for one in best] == sorted((one.value for one in best), reverse=True)
            if not state:
                # Nothing is left out of so wide a beam.
                assert {one.order for one in best} == set(values)


def test_what_depends_on_all_before_is_asked_with_all_before() -> None:
    """A sentence is worth how many of those before it have a smaller number: only the written order is whole."""
    steps: list[set[int]] = []

    def answer(asked: Sequence[Ask]) -> list[float]:
        steps.append({len(ask.order) for ask in asked})
        return [float(sum(one < ask.following for one in ask.order)) for ask in asked]

    found = search([5, 3], 2, answer)
    assert [best[0].order for best in found] == [(0, 1, 2, 3, 4), (0, 1, 2)]
    # Both sets at once, a step at a time; the first two are chosen together.
    assert steps == [{0}, {1}, {2}, {3}, {4}]


def test_a_narrow_beam_may_miss_it_and_says_what_it_found() -> None:
    # From 0 the best start is 1, but all that is good lies after 2.
    matrix = np.asarray([[0.0, 5.0, 4.0], [0.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    matrix[1, 2] = -9.0
    assert search([3], 1, by_pairs([matrix]))[0][0].order != (0, 2, 1)
    (best,) = search([3], 3, by_pairs([matrix]))
    assert (best[0].order, best[0].value) == ((0, 2, 1), 13.0)
