"""Draws of Kendall's tau-b against SciPy's on every sample written out."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ensue.stats.draws import cluster_codes, draw_counts
from ensue.stats.kendall import kendall_draws


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
