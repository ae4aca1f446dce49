"""Bootstrap draws of correlations against SciPy's on every sample written out; coverage of the interval."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.correlation import correlation_draws, kendall_draws, percentile_interval, ranks
from ensue.stats.resampling import cluster_codes, draw_counts


def _sample(n: int, seed: int, rho: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=n)
    return x, rho * x + np.sqrt(1 - rho**2) * generator.normal(size=n)


def _drawn_places(units: int, rounds: int, seed: int) -> np.ndarray:
    """The same draws, by the same generator, as places rather than counts."""
    return np.random.default_rng(seed).integers(0, units, size=(rounds, units))


def test_every_draw_is_scipys_correlation_of_the_drawn_sample() -> None:
    x, y = _sample(40, 1)
    x, y = np.round(x, 1) + 100, np.round(y)  # ties on both sides, far from zero
    found = correlation_draws(x, y, rounds=50, seed=5)
    for place, drawn in enumerate(_drawn_places(40, 50, 5)):
        assert found.pearson[place] == pytest.approx(stats.pearsonr(x[drawn], y[drawn]).statistic, abs=1e-9)
        assert found.spearman[place] == pytest.approx(stats.spearmanr(x[drawn], y[drawn]).statistic, abs=1e-9)


def test_whole_clusters_are_drawn() -> None:
    x, y = _sample(30, 2)
    clusters = [f"c{i // 3}" for i in range(30)]
    found = correlation_draws(x, y, clusters, rounds=20, seed=7)
    for place, drawn in enumerate(_drawn_places(10, 20, 7)):
        rows = np.concatenate([np.arange(3 * c, 3 * c + 3) for c in drawn])
        assert found.pearson[place] == pytest.approx(stats.pearsonr(x[rows], y[rows]).statistic, abs=1e-9)


def test_chunks_do_not_change_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = _sample(25, 3)
    whole = correlation_draws(x, y, rounds=30)
    monkeypatch.setattr("ensue.stats.correlation._CHUNK_NUMBERS", 100)
    parts = correlation_draws(x, y, rounds=30)
    np.testing.assert_allclose(whole.pearson, parts.pearson, atol=1e-12)
    np.testing.assert_allclose(whole.spearman, parts.spearman, atol=1e-12)


def test_intervals_hold_the_true_correlation_about_as_often_as_they_say() -> None:
    rho, covered = 0.6, 0
    for seed in range(200):
        x, y = _sample(150, seed, rho)
        low, high = percentile_interval(correlation_draws(x, y, rounds=400).pearson, 150)
        assert low is not None
        assert high is not None
        covered += low <= rho <= high
    assert 0.89 <= covered / 200 <= 0.99


def test_the_interval_is_near_scipys() -> None:
    x, y = _sample(300, 11)
    low, high = percentile_interval(correlation_draws(x, y, rounds=4000).pearson, 300)
    theirs = stats.bootstrap(
        (x, y),
        lambda a, b: stats.pearsonr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=2000,
        method="percentile",
        random_state=np.random.default_rng(0),
    ).confidence_interval
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=0.02)


def test_a_constant_side_has_no_interval() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = correlation_draws([0.1] * 6, range(6), rounds=10)
    assert np.isnan(found.pearson).all()
    assert np.isnan(found.spearman).all()
    assert percentile_interval(found.pearson, 6) == (None, None)


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="equal length"):
        correlation_draws([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="cluster names"):
        correlation_draws([1, 2], [1, 2], ["a"])
    with pytest.raises(ValueError, match="at least one round"):
        correlation_draws([1, 2], [1, 2], rounds=0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        percentile_interval(np.arange(3.0), 3, level=1.0)


def test_percentiles_reach_further_where_units_are_few_and_one_unit_has_none() -> None:
    draws = np.random.default_rng(0).normal(size=4000)
    tail = stats.norm.cdf(-np.sqrt(10 / 9) * stats.t.ppf(0.95, 9))
    expected = (np.quantile(draws, tail), np.quantile(draws, 1 - tail))
    assert percentile_interval(draws, 10, level=0.9) == pytest.approx(expected)
    assert percentile_interval(draws, 1) == (None, None)
    half = np.r_[draws, np.full(4000, np.nan)]
    assert percentile_interval(half, 10) == percentile_interval(draws, 10)
    assert percentile_interval(np.r_[half, np.nan], 10) == (None, None)
    assert percentile_interval(np.empty(0), 10) == (None, None)


def written_out(
    x: np.ndarray, y: np.ndarray, clusters: list[str] | None, rounds: int, seed: int
) -> list[float]:
    codes = cluster_codes(clusters, len(x))
    counts = draw_counts(int(codes.max()) + 1, rounds, np.random.default_rng(seed))[:, codes].astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [float(stats.kendalltau(np.repeat(x, row), np.repeat(y, row))[0]) for row in counts]


@given(st.integers(2, 12), st.booleans(), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_every_round_is_the_tau_of_its_sample(n: int, clustered: bool, seed: int) -> None:
    generator = np.random.default_rng(seed + 100)
    x, y = generator.integers(0, 4, n).astype(float), generator.normal(size=n).round(1)
    clusters = [f"article {place // 3}" for place in range(n)] if clustered else None
    found = kendall_draws(x, y, clusters, rounds=8, seed=seed)
    np.testing.assert_allclose(found, written_out(x, y, clusters, 8, seed), atol=1e-12)


def test_draws_are_spread_around_the_value() -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=150)
    y = x + generator.normal(size=150)
    draws = kendall_draws(x, y)
    assert np.isfinite(draws).all()
    # A pair drawn twice is tied with itself, which takes out of both counts alike: the mean stays near.
    assert draws.mean() == pytest.approx(stats.kendalltau(x, y)[0], abs=0.02)
    assert 0.02 < draws.std() < 0.08


def test_counts_add_up_to_the_units() -> None:
    counts = draw_counts(9, 50, np.random.default_rng(0))
    assert counts.shape == (50, 9)
    assert (counts.sum(axis=1) == 9).all()


def test_clusters_are_numbered_as_they_appear() -> None:
    assert cluster_codes(["q", "p", "q"], 3).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="3 items but 1 cluster"):
        cluster_codes(["q"], 3)


def test_lists_of_other_lengths_and_no_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="equal length"):
        kendall_draws([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="one round"):
        kendall_draws([1, 2], [1, 2], rounds=0)


def test_draws_are_two_thousand_with_seed_nought_unless_said_otherwise() -> None:
    x, y = _sample(12, 4)
    for found, expected in (
        (correlation_draws(x, y), correlation_draws(x, y, None, rounds=2_000, seed=0)),
        ([kendall_draws(x, y)], [kendall_draws(x, y, None, rounds=2_000, seed=0)]),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e7])
def test_neither_scale_nor_place_of_either_list_moves_a_draw(scale: float) -> None:
    x, y = _sample(4, 5)
    expected = correlation_draws(x, y, rounds=300)
    assert np.isnan(expected.pearson).any()  # four of the same
    far = 1e6 * scale
    for one, other in ((x * scale + far, y), (x, y * scale - far), (x * scale, y / scale)):
        found = correlation_draws(one, other, rounds=300)
        np.testing.assert_allclose(found.pearson, expected.pearson, atol=1e-6)
        np.testing.assert_allclose(found.spearman, expected.spearman, atol=1e-9)


@pytest.mark.filterwarnings("error")
def test_no_draw_is_beyond_one_and_one_that_is_constant_is_none() -> None:
    for seed in range(30):
        x, _ = _sample(5 + seed, seed)
        for y, sign in ((3.0 * x + 1.0, 1.0), (-7.0 * x, -1.0)):
            both = correlation_draws(x, y, rounds=200)
            for draws in (*both, kendall_draws(x, y, rounds=200)):
                there = draws[np.isfinite(draws)] * sign
                assert (there <= 1.0).all()
                assert there == pytest.approx(1.0)
    for pair in (([0.1] * 4, [1.0, 2.0, 3.0, 4.0]), ([1.0, 2.0, 3.0, 4.0], [0.1] * 4)):
        assert np.isnan(correlation_draws(*pair, rounds=9)).all()
        assert np.isnan(kendall_draws(*pair, rounds=9)).all()


def test_narrow_numbers_are_drawn_in_double() -> None:
    x, y = np.array([3000, 3002, 2001, 7, 11, 5]), np.array([1, 4000, 2001, 9, 4002, 6])
    for one, other in ((x.astype(np.float16), y), (x, y.astype(np.float16))):
        np.testing.assert_array_equal(
            correlation_draws(one, other, rounds=50), correlation_draws(x, y, rounds=50)
        )
        np.testing.assert_array_equal(kendall_draws(one, other, rounds=50), kendall_draws(x, y, rounds=50))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_ranks_are_scipys(values: list[int]) -> None:
    assert ranks(values).tolist() == stats.rankdata(values).tolist()


def test_lists_that_are_empty_or_no_lists_are_refused() -> None:
    for wrong in ([], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match="two flat lists of equal length"):
            correlation_draws(wrong, wrong)
    assert correlation_draws([1.0], [2.0], rounds=1).pearson.shape == (1,)
    with pytest.raises(ValueError, match="between 0 and 1, not 0"):
        percentile_interval(np.arange(3.0), 3, level=0.0)
