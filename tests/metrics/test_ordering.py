"""Metrics of orders against scipy, rapidfuzz and brute force."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from scipy.stats import kendalltau

from ensue.metrics.ordering import (
    edit_distance,
    kendall_tau,
    lcs_share,
    perfect_match,
    positional_accuracy,
    with_equals_in_order,
)

orders = st.integers(2, 12).flatmap(lambda count: st.permutations(range(count)))


@given(orders)
def test_tau_is_scipys(order: list[int]) -> None:
    assert kendall_tau(order) == pytest.approx(kendalltau(order, range(len(order))).statistic)


@given(orders)
def test_edit_distance_is_that_of_an_own_library(order: list[int]) -> None:
    assert edit_distance(order) == Levenshtein.distance(order, list(range(len(order)))) / len(order)


def test_every_order_of_five_by_brute_force() -> None:
    right = tuple(range(5))
    for order in permutations(right):
        common = max(
            size for size in range(6) if set(combinations(order, size)) & set(combinations(right, size))
        )
        assert lcs_share(order) == common / 5
        assert positional_accuracy(order) == sum(a == b for a, b in zip(order, right, strict=True)) / 5
        assert perfect_match(order) == float(order == right)


def test_a_single_sentence_is_in_order() -> None:
    assert (kendall_tau([0]), perfect_match([0]), lcs_share([0]), edit_distance([0])) == (1.0, 1.0, 1.0, 0.0)


def test_equal_sentences_may_change_places() -> None:
    sentences = ["Yes.", "No.", "Yes.", "Well.", "No."]
    assert with_equals_in_order([2, 1, 0, 3, 4], sentences) == [0, 1, 2, 3, 4]
    assert with_equals_in_order([4, 0, 2, 1, 3], sentences) == [1, 0, 2, 4, 3]
    # Different ones may not.
    assert with_equals_in_order([3, 1, 0, 2, 4], sentences) == [3, 1, 0, 2, 4]
