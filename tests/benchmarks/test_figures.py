"""Means of figures: of independent samples, of metrics of one sample, of answers to the same examples."""

from __future__ import annotations

import numpy as np
import pytest

from ensue.benchmarks.figures import Figure, mean_figure, mean_of_answers, mean_of_metrics


def _figure(seed: int, n: int = 50, clusters: int | None = None) -> Figure:
    draws = np.random.default_rng(seed).normal(0.5, 0.1, 4000)
    return Figure(0.5 + seed / 100, draws, n, clusters)


def _spread(figure: Figure) -> float:
    assert figure.draws is not None
    return float(np.std(figure.draws))


def test_a_row_says_how_many_clusters_were_resampled() -> None:
    row = _figure(1, 50, 7).row("MultiRC", "em", {"split": "dev"})
    assert (row["n"], row["clusters"]) == (50, 7)
    assert row["ci95"] == pytest.approx([0.3, 0.7], abs=0.02)
    assert Figure(0.5, None, 9).row("RTE", "accuracy", {})["clusters"] == 9


def test_means_have_the_spread_of_what_they_are_means_of() -> None:
    same = [_figure(3), _figure(3), _figure(3), _figure(3)]
    assert _spread(mean_figure(same)) == pytest.approx(0.05, rel=0.1)
    assert _spread(mean_of_metrics(same)) == pytest.approx(0.1, rel=0.05)
    others = [_figure(seed) for seed in range(4)]
    assert _spread(mean_of_metrics(others)) == pytest.approx(0.05, rel=0.1)
    assert _spread(mean_of_answers(others)) == pytest.approx(0.1, rel=0.05)
    for mean in (mean_figure(others), mean_of_metrics(others), mean_of_answers(others)):
        assert mean.value == pytest.approx(0.515)


def test_sizes_add_up_over_samples_only() -> None:
    parts = [_figure(0, 50, 5), _figure(1, 30)]
    whole = mean_figure(parts)
    assert (whole.n, whole.units) == (80, 35)
    metrics = [_figure(0, 50, 5), _figure(1, 20, 5)]
    assert (mean_of_metrics(metrics).n, mean_of_metrics(metrics).units) == (50, 5)


def test_one_part_without_draws_leaves_the_mean_without_an_interval() -> None:
    parts = [_figure(0), Figure(0.2, None, 4)]
    for mean in (mean_figure(parts), mean_of_metrics(parts), mean_of_answers(parts)):
        assert mean.draws is None
        assert mean.row("RTE", "accuracy", {})["ci95"] == [None, None]
