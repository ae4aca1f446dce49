"""Correlations with people: values against SciPy, rounds against samples written out, and what has none counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.summaries.metaeval import (
    CONSTANT,
    CONSTANT_ARTICLES,
    Correlated,
    correlations,
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


def test_draws_are_as_many_as_all_of_a_runs_with_seed_nought_unless_said_otherwise(
    tables: tuple[np.ndarray, ...],
) -> None:
    good, _, human = tables
    for level, given in (
        (over_summaries, (good.ravel(), human.ravel())),
        (summary_level, (good, human)),
        (system_level, (good, human)),
    ):
        found, expected = level(*given), level(*given, rounds=2_000, seed=0)  # type: ignore[operator]
        for kind in KINDS:
            np.testing.assert_array_equal(found.figures[kind].draws, expected.figures[kind].draws)
            assert found.figures[kind].bounds == (-1.0, 1.0)
            assert found.figures[kind]._replace(draws=None) == expected.figures[kind]._replace(draws=None)


def test_every_level_there_is_by_value(tables: tuple[np.ndarray, ...]) -> None:
    good, poor, human = tables
    scores = {"relevance": human, "fluency": poor}
    found = correlations(good, scores, seed=3)
    assert [at for at, _ in found] == [
        {"level": level, "human": score} for score in scores for level in ("system", "summary")
    ]
    for (at, one), correlate in zip(found, [system_level, summary_level] * 2, strict=True):
        expected = correlate(good, scores[at["human"]], seed=3)
        for kind in KINDS:
            np.testing.assert_array_equal(one.figures[kind].draws, expected.figures[kind].draws)
    clusters = [n // SYSTEMS for n in range(good.size)]
    ((at, one),) = correlations(good.ravel(), {"consistency": human.ravel()}, clusters, seed=3)
    expected = over_summaries(good.ravel(), human.ravel(), clusters, seed=3)
    assert at == {}
    for kind in KINDS:
        np.testing.assert_array_equal(one.figures[kind].draws, expected.figures[kind].draws)
    first, nought = correlations(good, {"r": human}), correlations(good, {"r": human}, seed=0)
    np.testing.assert_array_equal(first[0][1].figures["pearson"].draws, nought[0][1].figures["pearson"].draws)
    assert correlations([1.0], {"r": [2.0]}) == []
    assert correlations([[1.0], [2.0]], {"r": [[1.0], [2.0]]}) == []
    assert len(correlations([1.0, 2.0], {"r": [2.0, 3.0]})) == 1


def test_rounds_without_a_defined_article_are_none() -> None:
    """Two of three articles are constant, so that some rounds draw only those."""
    metric = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [2.0, 2.0, 2.0]])
    human = np.array([[1.0, 3.0, 2.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    found = summary_level(metric, human, rounds=200)
    counts = draw_counts(3, 200, np.random.default_rng(0))
    for figure in found.figures.values():
        assert figure.draws is not None
        np.testing.assert_array_equal(np.isnan(figure.draws), counts[:, 0] == 0)
        assert (figure.n, figure.units) == (3, 3)
    assert found.left_out == {CONSTANT_ARTICLES: 2}


def test_scales_of_metrics_and_people_do_not_matter(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = tables
    expected = system_level(good, human, rounds=ROUNDS)
    for scale in (1e-9, 1e9):
        found = system_level(good * scale, human / scale, rounds=ROUNDS)
        for kind in KINDS:
            np.testing.assert_allclose(found.figures[kind].draws, expected.figures[kind].draws, atol=1e-9)
    assert system_level(np.zeros((3, 2)), np.zeros((3, 2))) == ({}, {CONSTANT: 2})


def test_numbers_as_text_files_have_them_are_taken(tables: tuple[np.ndarray, ...]) -> None:
    good, _, human = tables
    metric = (good * 100).astype(np.int64)
    narrow = system_level((metric * 8).astype(np.float16), human.astype(np.int8), rounds=9)
    wide = system_level((metric * 8).astype(np.float16).tolist(), human.tolist(), rounds=9)
    for kind in KINDS:
        np.testing.assert_array_equal(narrow.figures[kind].draws, wide.figures[kind].draws)


def test_refusals_by_value() -> None:
    for wrong in (([1.0, 2.0], [1.0]), ([[1.0, 2.0]], [[1.0, 2.0]]), ([1.0], [1.0])):
        with pytest.raises(ValueError, match=r"This correlation needs two lists of one shape, not \("):
            over_summaries(*wrong)
    for wrong in (([1.0, 2.0], [1.0, 2.0]), ([[1.0, 2.0]], [[1.0, 2.0, 3.0]]), ([[1.0]], [[2.0]])):
        with pytest.raises(ValueError, match=r"needs two tables \[articles, systems\] of one shape, not \("):
            summary_level(*wrong)
    drawn = over_summaries([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], rounds=9)
    bare = Correlated({kind: one._replace(draws=None) for kind, one in drawn.figures.items()}, {})
    for pair in ((drawn, bare), (bare, drawn)):
        with pytest.raises(ValueError, match="same samples"):
            difference(*pair)
    assert difference(drawn, Correlated({}, {})) == difference(Correlated({}, {}), drawn) == {}
