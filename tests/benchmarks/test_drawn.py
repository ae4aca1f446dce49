"""Means of figures: of independent samples, of metrics of one sample, of answers to the same examples."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.drawn import Drawn, mean_of_answers, mean_of_metrics, mean_of_samples


def _figure(seed: int, n: int = 50, clusters: int | None = None) -> Drawn:
    draws = np.random.default_rng(seed).normal(0.5, 0.1, 4000)
    return Drawn(0.5 + seed / 100, draws, n, clusters)


def _spread(figure: Drawn) -> float:
    assert figure.draws is not None
    return float(np.std(figure.draws))


def test_a_row_says_how_many_clusters_were_resampled() -> None:
    row = _figure(1, 50, 7).row("MultiRC", "em", {"split": "dev"})
    assert (row["n"], row["clusters"]) == (50, 7)
    # Seven units: 0.1 times sqrt(7 / 6) times Student's t of six degrees of freedom.
    assert row["ci95"] == pytest.approx([0.5 - 0.264, 0.5 + 0.264], abs=0.02)
    assert _figure(1, 50).row("RTE", "accuracy", {})["ci95"] == pytest.approx([0.3, 0.7], abs=0.02)
    assert Drawn(0.5, None, 9).row("RTE", "accuracy", {})["clusters"] == 9


def test_means_have_the_spread_of_what_they_are_means_of() -> None:
    same = [_figure(3), _figure(3), _figure(3), _figure(3)]
    assert _spread(mean_of_samples(same)) == pytest.approx(0.05, rel=0.1)
    assert _spread(mean_of_metrics(same)) == pytest.approx(0.1, rel=0.05)
    others = [_figure(seed) for seed in range(4)]
    assert _spread(mean_of_metrics(others)) == pytest.approx(0.05, rel=0.1)
    assert _spread(mean_of_answers(others)) == pytest.approx(0.1, rel=0.05)
    for mean in (mean_of_samples(others), mean_of_metrics(others), mean_of_answers(others)):
        assert mean.value == pytest.approx(0.515)


def test_sizes_add_up_over_samples_only() -> None:
    parts = [_figure(0, 50, 5), _figure(1, 30)]
    whole = mean_of_samples(parts)
    assert (whole.n, whole.units) == (80, 35)
    metrics = [_figure(0, 50, 5), _figure(1, 20, 5)]
    assert (mean_of_metrics(metrics).n, mean_of_metrics(metrics).units) == (50, 5)


def test_one_part_without_draws_leaves_the_mean_without_an_interval() -> None:
    parts = [_figure(0), Drawn(0.2, None, 4)]
    for mean in (mean_of_samples(parts), mean_of_metrics(parts), mean_of_answers(parts)):
        assert mean.draws is None
        assert mean.row("RTE", "accuracy", {})["ci95"] == [None, None]


def test_a_perfect_figure_is_not_certain_and_one_that_cannot_vary_has_no_interval() -> None:
    perfect = Drawn(1.0, np.ones(100), 56, bounds=(-1.0, 1.0))
    low = stats.binomtest(56, 56).proportion_ci(method="wilson").low
    assert perfect.interval() == (pytest.approx(2.0 * low - 1.0), 1.0)
    rounded = Drawn(1.0 - 1e-12, 1.0 - np.linspace(0.0, 1e-12, 100), 56)
    assert rounded.interval() == (pytest.approx(low), 1.0)
    assert Drawn(1.0, np.ones(100), 56).interval() == (pytest.approx(low), 1.0)
    worst = Drawn(-1.0, -np.ones(100), 56, bounds=(-1.0, 1.0))
    assert worst.interval() == (-1.0, pytest.approx(1.0 - 2.0 * low))
    assert Drawn(0.0, np.zeros(100), 56, bounds=(-1.0, 1.0)).interval() == (None, None)
    assert Drawn(1.0, np.ones(100), 56, 1).interval() == (None, None)


def test_an_interval_holds_its_value() -> None:
    draws = np.random.default_rng(0).uniform(0.4, 0.6, 500)
    low, high = Drawn(0.5, draws, 100).interval()
    assert Drawn(0.7, draws, 100).interval() == (low, 0.7)
    assert Drawn(0.2, draws, 100).interval() == (0.2, high)
    assert Drawn(0.5, np.full(500, np.nan), 100).interval() == (None, None)


def test_means_of_shares_and_correlations_keep_the_widest_ends() -> None:
    parts = [_figure(0), _figure(1)._replace(bounds=(-1.0, 1.0))]
    assert mean_of_samples(parts).bounds == mean_of_metrics(parts).bounds == (-1.0, 1.0)
    assert mean_of_samples(parts[:1]).bounds == (0.0, 1.0)
