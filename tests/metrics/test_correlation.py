"""Correlations against scipy's, with ties, constants and bad input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.metrics.correlation import pearson, ranks, spearman

_NUMBERS = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
_TIED = st.integers(-3, 3).map(float)
_PAIRS = st.lists(st.tuples(_NUMBERS | _TIED, _NUMBERS | _TIED), min_size=3, max_size=60)


def _reference(function: object, x: list[float], y: list[float]) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of constant input and returns nan, as we do
        return float(function(x, y).statistic)  # type: ignore[operator]


@settings(max_examples=200, deadline=None)
@given(_PAIRS)
def test_both_agree_with_scipy(pairs: list[tuple[float, float]]) -> None:
    x, y = (list(side) for side in zip(*pairs, strict=True))
    for ours, theirs in ((pearson, stats.pearsonr), (spearman, stats.spearmanr)):
        assert ours(x, y) == pytest.approx(_reference(theirs, x, y), abs=1e-6, nan_ok=True)


@given(st.lists(_TIED | _NUMBERS, min_size=1, max_size=50))
def test_ranks_are_those_of_scipy(values: list[float]) -> None:
    assert ranks(values).tolist() == stats.rankdata(values).tolist()


def test_large_samples_with_many_ties_agree_closely() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=5000)
    y = np.round(x + generator.normal(size=5000), 1)
    assert pearson(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("function", [pearson, spearman])
def test_a_constant_list_has_no_correlation(function: object) -> None:
    assert math.isnan(function([0.1] * 7, [1, 2, 3, 4, 5, 6, 7]))  # type: ignore[operator]


@pytest.mark.parametrize("function", [pearson, spearman])
@pytest.mark.parametrize(
    ("x", "y", "words"),
    [([1, 2], [1, 2, 3], "equal length"), ([1], [1], "two pairs"), ([1, 2, math.nan], [1, 2, 3], "finite")],
)
def test_bad_input_is_refused(function: object, x: list[float], y: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        function(x, y)  # type: ignore[operator]


def test_two_pairs_are_enough() -> None:
    assert pearson([1.0, 2.0], [5.0, 9.0]) == pytest.approx(1.0)
    assert spearman([1.0, 2.0], [9.0, 5.0]) == pytest.approx(-1.0)
