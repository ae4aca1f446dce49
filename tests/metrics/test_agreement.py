"""Fleiss' kappa against the formula written out, and against chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.metrics.agreement import agreement_sums, fleiss_kappa, kappa_of_sums, votes


def _by_loops(labels: list[list[int]], categories: int) -> float:
    """Observed agreement over all pairs of annotators, expected from how often each category was chosen."""
    observed = []
    for given_ in labels:
        pairs = [(i, j) for i in range(len(given_)) for j in range(len(given_)) if i != j]
        observed.append(sum(given_[i] == given_[j] for i, j in pairs) / len(pairs))
    flat = [label for given_ in labels for label in given_]
    expected = sum((flat.count(category) / len(flat)) ** 2 for category in range(categories))
    return (sum(observed) / len(observed) - expected) / (1 - expected)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(2, 6), st.integers(1, 12))
def test_kappa_is_the_formulas(data: st.DataObject, raters: int, n: int) -> None:
    row = st.lists(st.integers(0, 2), min_size=raters, max_size=raters)
    labels = data.draw(st.lists(row, min_size=n, max_size=n))
    found = fleiss_kappa(votes(labels, 3))
    if len({label for given_ in labels for label in given_}) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(_by_loops(labels, 3), abs=1e-12)


def test_random_annotators_agree_by_chance_and_like_ones_entirely() -> None:
    generator = np.random.default_rng(0)
    assert fleiss_kappa(votes(generator.integers(0, 3, (4000, 5)), 3)) == pytest.approx(0.0, abs=0.02)
    assert fleiss_kappa(votes(np.repeat([[0], [1], [2]], 5, axis=1), 3)) == pytest.approx(1.0)


def test_sums_of_many_rounds_give_each_its_kappa() -> None:
    tables = [votes(np.random.default_rng(seed).integers(0, 2, (20, 4)), 2) for seed in range(5)]
    sums = np.array([agreement_sums(table).sum(axis=0) for table in tables])
    np.testing.assert_allclose(kappa_of_sums(sums), [fleiss_kappa(table) for table in tables])


def test_unequal_numbers_of_annotators_are_refused() -> None:
    with pytest.raises(ValueError, match="equally many"):
        fleiss_kappa([[2, 1], [1, 1]])
    with pytest.raises(ValueError, match="at least two"):
        fleiss_kappa([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="from 0 to 1"):
        votes([[0, 2]], 2)


@pytest.mark.parametrize("wrong", [[1, 2, 3], np.empty((0, 2)), 3.0])
def test_what_is_no_table_of_votes_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="votes by item and category"):
        fleiss_kappa(wrong)
