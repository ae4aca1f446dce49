"""Correlations with people: values against SciPy, rounds against samples written out, and what has none counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.qags.metaeval import (
    CONSTANT,
    CONSTANT_ARTICLES,
    difference,
    over_summaries,
    summary_level,
    system_level,
)
from ensue.errors import EnsueError
from ensue.metrics.correlation import KINDS
from ensue.stats.resampling import draw_counts
from ensue.stats.student import widened_tail

SCIPY = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
ARTICLES, SYSTEMS, ROUNDS = 9, 6, 12


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(4)
    human = generator.integers(1, 6, size=(ARTICLES, SYSTEMS)).astype(float)
    good = human + generator.normal(size=human.shape)
    poor = human + 4 * generator.normal(size=human.shape)
    return good, poor, human


def test_over_summaries_the_values_are_scipys(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = (table.ravel() for table in tables)
    found = over_summaries(good, human, [n // SYSTEMS for n in range(len(good))], rounds=200)
    assert tuple(found.figures) == KINDS
    for kind, figure in found.figures.items():
        assert figure.value == pytest.approx(SCIPY[kind](good, human)[0], abs=1e-12)
        assert (figure.n, figure.units) == (ARTICLES * SYSTEMS, ARTICLES)
        low, high = figure.row("t", kind, {})["ci95"]
        assert low is not None
        assert high is not None
        assert low < figure.value < high
    assert found.left_out == {}


def test_clusters_are_drawn_whole(tables: tuple[np.ndarray, ...]) -> None:
    """Every summary written twice under its own cluster says no more than once."""
    good, _, human = (table.ravel() for table in tables)
    once = over_summaries(good, human, rounds=300)
    twice = over_summaries(
        np.repeat(good, 2), np.repeat(human, 2), [n // 2 for n in range(2 * len(good))], rounds=300
    )
    for kind in ("pearson", "spearman", "kendall"):
        # Rounds differ in how many numbers are drawn at a time, never in which units.
        np.testing.assert_allclose(once.figures[kind].draws, twice.figures[kind].draws, atol=1e-9)


def test_summary_level_is_the_mean_over_articles(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = tables
    found = summary_level(good, human, rounds=ROUNDS, seed=2)
    counts = draw_counts(ARTICLES, ROUNDS, np.random.default_rng(2)).astype(int)
    for kind, figure in found.figures.items():
        each = [SCIPY[kind](a, b)[0] for a, b in zip(good, human, strict=True)]
        assert figure.value == pytest.approx(sum(each) / ARTICLES, abs=1e-12)
        np.testing.assert_allclose(figure.draws, [np.repeat(each, row).mean() for row in counts], atol=1e-12)
        assert (figure.n, figure.units) == (ARTICLES * SYSTEMS, ARTICLES)


def test_system_level_is_the_correlation_of_means(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = tables
    found = system_level(good, human, rounds=ROUNDS, seed=2)
    counts = draw_counts(ARTICLES, ROUNDS, np.random.default_rng(2)).astype(int)
    for kind, figure in found.figures.items():
        assert figure.value == pytest.approx(SCIPY[kind](good.mean(axis=0), human.mean(axis=0))[0], abs=1e-11)
        # Rounded, since equal means of integers may differ in their last bit by the way they are added.
        written = [
            SCIPY[kind](*(np.repeat(t, row, axis=0).mean(axis=0).round(9) for t in (good, human)))[0]
            for row in counts
        ]
        np.testing.assert_allclose(figure.draws, written, atol=1e-8)
        assert (figure.n, figure.units) == (SYSTEMS, ARTICLES)


def test_an_article_whose_systems_all_have_one_value_is_left_out(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = tables
    level = human.copy()
    level[[1, 4]] = 3.0
    found = summary_level(good, level, rounds=ROUNDS)
    kept = [n for n in range(ARTICLES) if n not in (1, 4)]
    assert found.left_out == {CONSTANT_ARTICLES: 2}
    for kind, figure in found.figures.items():
        alone = summary_level(good[kept], level[kept], rounds=ROUNDS).figures[kind]
        assert figure.value == pytest.approx(alone.value, abs=1e-12)
        assert figure.n == alone.n == 7 * SYSTEMS


def test_where_nothing_varies_there_is_no_row_rather_than_a_nan() -> None:
    same, other = np.full((3, 4), 0.5), np.arange(12.0).reshape(3, 4)
    assert over_summaries(same.ravel(), other.ravel()) == ({}, {CONSTANT: 12})
    assert summary_level(same, other) == ({}, {CONSTANT_ARTICLES: 3})
    assert system_level(other, same) == ({}, {CONSTANT: 4})
    flat, rising = (over_summaries(one.ravel(), other.ravel()) for one in (same, other))
    assert difference(flat, rising) == {}


def test_two_metrics_are_compared_on_the_same_samples(tables: tuple[np.ndarray, ...]) -> None:
    good, poor, human = (table.ravel() for table in tables)
    clusters = [n // SYSTEMS for n in range(len(good))]
    first = over_summaries(good, human, clusters, rounds=400)
    for kind, test in difference(first, over_summaries(poor, human, clusters, rounds=400)).items():
        a, b = SCIPY[kind](good, human)[0], SCIPY[kind](poor, human)[0]
        assert test.difference == pytest.approx(a - b, abs=1e-12)
        assert test.p_value is not None
        assert test.p_value < 0.05
    same = difference(first, first)
    assert {test.p_value for test in same.values()} == {1.0}
    assert {(test.low, test.high) for test in same.values()} == {(0.0, 0.0)}


def test_levels_are_compared_round_by_round(tables: tuple[np.ndarray, ...]) -> None:
    good, poor, human = tables
    for level in (summary_level, system_level):
        a, b = level(good, human, rounds=60), level(poor, human, rounds=60)
        for kind, test in difference(a, b).items():
            first, second = a.figures[kind], b.figures[kind]
            assert test.difference == first.value - second.value
            assert first.draws is not None
            assert second.draws is not None
            assert test.low == pytest.approx(
                np.quantile(first.draws - second.draws, widened_tail(0.95, ARTICLES))
            )


def test_figures_of_other_samples_are_not_compared(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = tables
    with pytest.raises(ValueError, match="same samples"):
        difference(summary_level(good, human), summary_level(good[1:], human[1:]))


def test_a_missing_value_is_named() -> None:
    with pytest.raises(EnsueError, match="The metric of summary 2 is not a number; leave the summary out"):
        over_summaries([1.0, math.nan, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(EnsueError, match="The human score of summary 1, 2 is not a number"):
        system_level([[1.0, 2.0]], [[1.0, math.inf]])
    with pytest.raises(ValueError, match="two lists of one shape"):
        over_summaries([1.0, 2.0], [1.0])
