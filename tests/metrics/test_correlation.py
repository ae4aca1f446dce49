"""Correlations of lists and of rows against SciPy's, with ties, constants and bad input."""

from __future__ import annotations

import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from ensue.metrics.correlation import KINDS, Kind, kendall, pearson, ranks, row_ranks, rowwise, spearman

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


SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


def reference(kind: Kind, x: np.ndarray, y: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(SCIPY[kind](x, y)[0])


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    shape = (draw(st.integers(1, 4)), draw(st.integers(2, 9)))
    one = arrays(np.float64, shape, elements=st.sampled_from([-2.0, 0.0, 0.5, 1.0, 7.25]))
    return draw(one), draw(one)


@given(tables(), st.sampled_from(KINDS))
@settings(max_examples=150)
def test_every_row_is_as_scipy_has_it(pair: tuple[np.ndarray, np.ndarray], kind: Kind) -> None:
    x, y = pair
    expected = [reference(kind, a, b) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(rowwise(kind, x, y), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_long_rows_and_many_rows(kind: Kind) -> None:
    generator = np.random.default_rng(0)
    for shape in [(3, 1500), (900, 70)]:
        x = generator.normal(size=shape).round(2)
        y = x + generator.normal(size=shape).round(1)
        found = rowwise(kind, x, y)
        for place in (0, 1, len(x) - 1):
            assert found[place] == pytest.approx(reference(kind, x[place], y[place]), abs=1e-12)


def test_ranks_of_rows_share_their_mean_where_equal() -> None:
    x = np.random.default_rng(3).integers(0, 5, size=(20, 11)).astype(float)
    np.testing.assert_array_equal(row_ranks(x), stats.rankdata(x, axis=1))


def test_a_constant_with_rounding_has_no_correlation() -> None:
    row = np.full(7, 0.1) * 3
    assert math.isnan(rowwise("pearson", [row], [np.arange(7.0)])[0])
    assert math.isnan(kendall(row, np.arange(7.0)))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [([1, 2], [1, 2], "one shape"), ([[1, 2]], [[1, 2, 3]], "one shape"), ([[1]], [[1]], "two pairs")],
)
def test_what_has_no_correlation_is_refused(x: object, y: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        rowwise("pearson", x, y)


def test_what_is_missing_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        kendall([1.0, math.nan], [1.0, 2.0])


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows_have_no_correlations(kind: Kind) -> None:
    assert rowwise(kind, np.empty((0, 3)), np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize("kind", KINDS)
def test_narrow_numbers_are_correlated_in_double(kind: Kind) -> None:
    x, y = np.array([[3000, 3002, 2001, 7, 11]] * 2), np.array([[3.5, 4000, 2001, 9, 6], [1, 2, 3, 4, 5]])
    found = rowwise(kind, x.astype(np.float16), y.astype(np.float16))
    assert found.tolist() == rowwise(kind, x.tolist(), y.tolist()).tolist()
    for ours in (pearson, spearman, kendall):
        assert ours(x[0].astype(np.float16), y[0].astype(np.float16)) == ours(x[0], y[0])


@pytest.mark.parametrize("kind", ["spearman", "kendall"])
def test_all_is_compared_with_all_a_few_megabytes_at_a_time(kind: Kind) -> None:
    """Rows of 200 numbers: 40,000 comparisons of a byte each, a hundred rows at a time."""
    x = np.random.default_rng(0).normal(size=(1_000, 200))
    tracemalloc.start()
    rowwise(kind, x, x[:, ::-1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 4e6 < peak < 32e6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_constants_of_any_size_have_no_correlation_and_leave_other_rows_theirs(kind: Kind) -> None:
    """Rounding leaves a spread of some last bits, which is measured by the size of the row's own numbers."""
    up = np.arange(7.0)
    constants = [np.full(7, value) for value in (0.0, 0.1, 1 / 3, 1e9 / 3, -1e15 / 7, 1e-9 / 3)]
    rows = np.array([*constants, up, 1e-9 * up, 1e15 * up])
    found = rowwise(kind, rows, np.array([up] * len(rows)))
    assert np.isnan(found[:6]).all()
    assert found[6:] == pytest.approx(1.0)
    turned = rowwise(kind, np.array([up] * len(rows)), rows)
    np.testing.assert_array_equal(np.isnan(turned), np.isnan(found))


@pytest.mark.parametrize("kind", KINDS)
def test_no_correlation_is_beyond_one_by_rounding(kind: Kind) -> None:
    generator = np.random.default_rng(5)
    for n in range(2, 40):
        x = generator.normal(size=(60, n))
        found = np.concatenate([rowwise(kind, x, 3.0 * x + 1.0), -rowwise(kind, x, -7.0 * x)])
        assert (found <= 1.0).all()
        assert found == pytest.approx(1.0)


def test_refusals_by_value() -> None:
    with pytest.raises(ValueError) as flat:
        pearson([1, 2], [1, 2, 3])
    assert str(flat.value) == "A correlation needs two flat lists of equal length, not (2,) and (3,)."
    with pytest.raises(ValueError) as table:
        rowwise("pearson", [1, 2], [1, 2])
    assert str(table.value) == "A correlation needs two tables of one shape, not (2,) and (2,)."
