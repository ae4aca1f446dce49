"""Comparing two correlations: Student's tail against SciPy's, Williams' test where nothing differs, draws counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.correlation import correlation_draws
from ensue.stats.paired_correlation import paired_difference, williams_test
from ensue.stats.student import normal_quantile, student_quantile, two_sided_t, widened_tail


@given(st.floats(-50, 50), st.integers(1, 5_000))
def test_the_tail_of_t_is_scipys(t: float, df: int) -> None:
    expected = 2 * stats.t.sf(abs(t), df)
    assert two_sided_t(t, df) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_the_tail_of_t_at_its_ends() -> None:
    assert two_sided_t(0.0, 7) == pytest.approx(1.0)
    assert two_sided_t(math.inf, 7) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(ValueError, match="degree of freedom"):
        two_sided_t(1.0, 0)


def test_williams_test_gives_what_the_r_package_psych_prints() -> None:
    """`r.test(103, .4, .5, .1)` prints t = -0.89 with probability 0.37."""
    found = williams_test(0.4, 0.5, 0.1, 103)
    assert (round(found.t, 2), found.df, round(found.p_value, 2)) == (-0.89, 100, 0.37)
    turned = williams_test(0.5, 0.4, 0.1, 103)
    assert turned.t == -found.t
    assert turned.p_value == found.p_value


def test_williams_p_values_are_even_where_two_metrics_are_alike() -> None:
    generator = np.random.default_rng(0)
    found = []
    for _ in range(1_500):
        human, a, b = generator.normal(size=(3, 40))
        a, b = human + a, human + b
        r = np.corrcoef([a, b, human])
        found.append(williams_test(r[0, 2], r[1, 2], r[0, 1], 40).p_value)
    assert stats.kstest(found, "uniform").pvalue > 0.01


def test_williams_at_its_ends() -> None:
    assert williams_test(0.3, 0.3, 1.0, 20) == (0.0, 17, 1.0)
    assert 0.0 <= williams_test(1.0, 0.2, 0.2, 20).p_value < 1e-6
    with pytest.raises(ValueError, match="four items"):
        williams_test(0.1, 0.2, 0.3, 3)
    with pytest.raises(ValueError, match="between -1 and 1"):
        williams_test(1.1, 0.2, 0.3, 30)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=2, max_size=40))
def test_the_paired_p_value_is_counted(draws: list[tuple[float, float]]) -> None:
    a, b = ([pair[side] for pair in draws] for side in (0, 1))
    found = paired_difference(0.5, 0.25, a, b, 12)
    gaps = [one - other for one, other in draws]
    rarer = min(sum(gap <= 0 for gap in gaps), sum(gap >= 0 for gap in gaps))
    assert found.difference == 0.25
    assert found.p_value == min(1.0, 2 * (rarer + 1) / (len(gaps) + 1))
    tail = stats.norm.cdf(-math.sqrt(12 / 11) * stats.t.ppf(0.975, 11))
    assert found.low == pytest.approx(np.quantile(gaps, tail))
    assert found.high == pytest.approx(np.quantile(gaps, 1.0 - tail))


def test_rounds_without_a_correlation_are_left_out_and_too_many_leave_nothing() -> None:
    nan = math.nan
    assert paired_difference(0.1, 0.0, [0.2, nan, 0.2, 0.3], [0.0] * 4, 9).p_value == 0.5
    assert paired_difference(0.1, 0.0, [0.2, nan, nan, nan], [0.0] * 4, 9) == (0.1, None, None, None)
    with pytest.raises(ValueError, match="round by round"):
        paired_difference(0.1, 0.0, [0.1], [0.1, 0.2], 9)


def test_equal_seeds_make_draws_that_belong_together() -> None:
    """Two near copies of one metric: their difference hardly varies, though each correlation does."""
    generator = np.random.default_rng(5)
    human = generator.normal(size=120)
    a = human + generator.normal(size=120)
    b = a + 0.01 * generator.normal(size=120)
    first, second = (correlation_draws(metric, human, seed=3).pearson for metric in (a, b))
    assert first.std() > 0.03
    assert (first - second).std() < 0.005


def test_bootstrap_and_williams_agree_where_williams_holds() -> None:
    generator = np.random.default_rng(11)
    human = generator.normal(size=400)
    a, b = human + 1.4 * generator.normal(size=400), human + 2.0 * generator.normal(size=400)
    r = np.corrcoef([a, b, human])
    williams = williams_test(r[0, 2], r[1, 2], r[0, 1], 400)
    draws = [correlation_draws(metric, human, rounds=4_000).pearson for metric in (a, b)]
    paired = paired_difference(r[0, 2], r[1, 2], *draws, 400)
    assert paired.p_value == pytest.approx(williams.p_value, abs=0.02)


@pytest.mark.parametrize("level", [0.5, 0.95])
@pytest.mark.parametrize("df", [1, 2.5, 30])
def test_quantiles_are_scipys(level: float, df: float) -> None:
    assert student_quantile(level, df) == pytest.approx(stats.t.ppf((1 + level) / 2, df))
    assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2))


@pytest.mark.parametrize("units", [2, 6, 40])
def test_draws_of_few_units_lose_less_at_either_end(units: int) -> None:
    expected = stats.norm.cdf(-math.sqrt(units / (units - 1)) * stats.t.ppf(0.975, units - 1))
    assert widened_tail(0.95, units) == pytest.approx(expected)
    assert widened_tail(0.95, units) < 0.025
