"""Metrics of classes against scikit-learn, on single tables and on many at once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as reference

from ensue.metrics.classification import (
    accuracy,
    class_counts,
    class_f1,
    confusion,
    f1,
    macro_f1,
    matthews,
)

Labels = NDArray[np.int64]


@st.composite
def labelled(draw: st.DrawFn, classes: int) -> tuple[Labels, Labels]:
    n = draw(st.integers(1, 40))
    numbers = st.lists(st.integers(0, classes - 1), min_size=n, max_size=n)
    return np.array(draw(numbers)), np.array(draw(numbers))


@settings(max_examples=150, deadline=None)
@given(labelled(2))
def test_two_classes_are_scikit_learns(pair: tuple[Labels, Labels]) -> None:
    gold, given_ = pair
    table = confusion(gold, given_, 2)
    assert table.tolist() == reference.confusion_matrix(gold, given_, labels=[0, 1]).tolist()
    assert accuracy(table) == pytest.approx(reference.accuracy_score(gold, given_))
    assert f1(table) == pytest.approx(reference.f1_score(gold, given_, zero_division=0))
    assert f1(table, positive=0) == pytest.approx(
        reference.f1_score(gold, given_, pos_label=0, zero_division=0)
    )
    assert matthews(table) == pytest.approx(_matthews(gold, given_), abs=1e-12)


@settings(max_examples=150, deadline=None)
@given(labelled(3))
def test_three_classes_are_scikit_learns(pair: tuple[Labels, Labels]) -> None:
    gold, given_ = pair
    table = confusion(gold, given_, 3)
    assert macro_f1(table) == pytest.approx(
        reference.f1_score(gold, given_, average="macro", zero_division=0)
    )
    assert matthews(table) == pytest.approx(_matthews(gold, given_), abs=1e-12)
    each = reference.f1_score(gold, given_, labels=[0, 1, 2], average=None, zero_division=0)
    np.testing.assert_allclose(class_f1(table), each)


def test_many_tables_at_once_are_each_alone() -> None:
    tables = np.random.default_rng(0).integers(0, 6, size=(50, 3, 3))
    tables[0] = 0
    tables[1, :, 1:] = 0
    for metric in (accuracy, f1, macro_f1, matthews):
        assert metric(tables).tolist() == [float(metric(table)) for table in tables]
    assert (accuracy(tables)[0], matthews(tables)[0], matthews(tables)[1]) == (0.0, 0.0, 0.0)


def test_r3_by_gorodkins_covariances() -> None:
    generator = np.random.default_rng(1)
    gold = generator.integers(0, 3, 200)
    given_ = np.where(generator.random(200) < 0.6, gold, generator.integers(0, 3, 200))
    x, y = np.eye(3)[given_], np.eye(3)[gold]

    def covariance(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
        return sum(float(np.cov(a[:, k], b[:, k])[0, 1]) for k in range(3)) / 3

    expected = covariance(x, y) / np.sqrt(covariance(x, x) * covariance(y, y))
    assert matthews(confusion(gold, given_, 3)) == pytest.approx(expected)


def test_counts_of_each_class() -> None:
    gold, given_, both = class_counts(confusion([0, 0, 1, 2], [0, 1, 1, 1], 3))
    assert (gold.tolist(), given_.tolist(), both.tolist()) == ([2, 1, 1], [1, 3, 0], [1, 1, 0])


@pytest.mark.parametrize(("gold", "given_"), [([], []), ([0], [0, 1]), ([0, 3], [0, 0]), ([0, -1], [0, 0])])
def test_what_is_no_pair_of_label_lists_is_refused(gold: list[int], given_: list[int]) -> None:
    with pytest.raises(ValueError):
        confusion(gold, given_, 3)


def test_a_table_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match="square"):
        accuracy(np.zeros((2, 3)))


def _matthews(gold: Labels, given_: Labels) -> float:
    with warnings.catch_warnings():
        # scikit-learn warns of a single label; what it returns is 0.
        warnings.simplefilter("ignore")
        return float(reference.matthews_corrcoef(gold, given_))


@pytest.mark.parametrize(
    ("gold", "given_"), [([0, 2], [0, 1]), ([0, 1], [0, 2]), ([-1, 1], [0, 1]), ([0, 1], [0, -1])]
)
def test_a_class_that_is_not_there_is_refused(gold: list[int], given_: list[int]) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        confusion(gold, given_, 2)


def test_narrow_numbers_are_counted_in_double() -> None:
    counts = np.array([[3000, 2, 11], [5, 2010, 7], [9, 1, 4000]])
    for metric in (accuracy, f1, macro_f1, matthews):
        assert float(metric(counts.astype(np.float16))) == float(metric(counts))  # type: ignore[arg-type]
    # Twenty times twenty cells do not fit a byte, nor do sums of its counts.
    gold, given_ = np.array([19, 19, 3, 0]), np.array([18, 19, 3, 1])
    for dtype in (np.int8, np.float32):
        found = confusion(gold.astype(dtype), given_.astype(dtype), 20)
        assert found.tolist() == confusion(gold, given_, 20).tolist()
    assert [found[19, 18], found[19, 19], found[3, 3], found[0, 1], found.sum()] == [1, 1, 1, 1, 4]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 3, 2), (3, 3, 2), (2, 2, 3)])
@pytest.mark.parametrize("metric", [accuracy, f1, macro_f1, matthews])
def test_counts_that_are_no_square_table_are_refused(metric: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="square table, not of shape"):
        metric(np.zeros(shape))
