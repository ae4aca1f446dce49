"""Resampled sums against a loop that draws clusters one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import f1_score, matthews_corrcoef

from ensue.metrics.classification import accuracy, confusion_cells, macro_f1, matthews
from ensue.stats.resampling import (
    MadeUp,
    cluster_codes,
    confusion_draws,
    one_hot,
    random_answer,
    sum_draws,
    table_of_clusters,
)


def _naive(
    table: NDArray[np.float64], clusters: list[str], rounds: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    names = sorted(set(clusters))
    found = []
    for _ in range(rounds):
        drawn = [names[place] for place in generator.integers(0, len(names), len(names))]
        members = [place for name in drawn for place, one in enumerate(clusters) if one == name]
        found.append(table[members].sum(axis=0))
    return np.array(found)


def test_drawn_sums_have_the_means_and_covariances_of_a_loop() -> None:
    generator = np.random.default_rng(0)
    clusters = [f"passage-{place}" for place in generator.integers(0, 12, 60)]
    table = generator.integers(0, 3, (60, 3)).astype(float)
    found = sum_draws(table, clusters, rounds=8000)
    reference = _naive(table, clusters, 4000, generator)
    np.testing.assert_allclose(found.mean(axis=0), reference.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(np.cov(found.T), np.cov(reference.T), rtol=0.12, atol=3)
    np.testing.assert_allclose(
        np.quantile(found, [0.025, 0.975], axis=0), np.quantile(reference, [0.025, 0.975], axis=0), rtol=0.04
    )


def test_intervals_of_metrics_are_those_of_scikit_learn_in_a_loop() -> None:
    generator = np.random.default_rng(1)
    gold = generator.integers(0, 3, 120)
    given = np.where(generator.random(120) < 0.7, gold, generator.integers(0, 3, 120))
    tables = confusion_draws(confusion_cells(gold, given, 3), 3)
    assert tables.shape == (2000, 3, 3)
    assert tables.sum(axis=(1, 2)) == pytest.approx(120.0)
    places = generator.integers(0, 120, (600, 120))
    ours = np.quantile(matthews(tables), [0.025, 0.5, 0.975])
    naive = np.quantile(
        [matthews_corrcoef(gold[drawn], given[drawn]) for drawn in places], [0.025, 0.5, 0.975]
    )
    np.testing.assert_allclose(ours, naive, atol=0.025)
    ours = np.quantile(macro_f1(tables), [0.025, 0.5, 0.975])
    naive = np.quantile(
        [f1_score(gold[drawn], given[drawn], average="macro") for drawn in places], [0.025, 0.5, 0.975]
    )
    np.testing.assert_allclose(ours, naive, atol=0.025)


def test_draws_depend_on_the_seed_and_not_on_the_order_of_items() -> None:
    generator = np.random.default_rng(2)
    cells = generator.integers(0, 4, 50)
    clusters = [str(place // 5) for place in range(50)]
    order = generator.permutation(50)
    first = confusion_draws(cells, 2, clusters, rounds=50)
    again = confusion_draws(cells[order], 2, [clusters[place] for place in order], rounds=50)
    assert first.tolist() == again.tolist()
    assert first.tolist() != confusion_draws(cells, 2, clusters, rounds=50, seed=1).tolist()


def test_a_cluster_is_weighed_whole_and_the_weights_are_dirichlets() -> None:
    clusters = ["a", "a", "b", "b"]
    drawn = sum_draws([[1, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 2]], clusters, rounds=4000)
    assert drawn[:, 0] == pytest.approx(2 * drawn[:, 2])
    assert drawn[:, 1] == pytest.approx(drawn[:, 3])
    assert drawn[:, 0] + drawn[:, 1] == pytest.approx(4.0)
    # One of two weights that add up to 2 is uniform.
    assert stats.kstest(drawn[:, 2] / 2.0, "uniform").pvalue > 0.01


def test_a_perfect_classifier_is_not_certain_and_its_accuracy_is_jeffreys() -> None:
    gold = np.array([0] * 30 + [1] * 26)
    tables = confusion_draws(confusion_cells(gold, gold, 2), 2, rounds=20_000)
    expected = stats.beta.ppf([0.025, 0.5], 56.5, 0.5)
    assert np.quantile(accuracy(tables), [0.025, 0.5]) == pytest.approx(expected, abs=0.004)
    assert stats.kstest(accuracy(tables), "beta", (56.5, 0.5)).pvalue > 0.01
    assert np.quantile(matthews(tables), 0.025) < 0.95
    # Four to a cluster: fourteen clusters say less than 56 answers.
    whole = accuracy(confusion_draws(confusion_cells(gold, gold, 2), 2, [n // 4 for n in range(56)]))
    assert np.quantile(whole, 0.025) == pytest.approx(stats.beta.ppf(0.025, 14.5, 0.5), abs=0.02)


def test_one_answer_at_random_is_made_up() -> None:
    table = one_hot(confusion_cells([0, 0, 0, 2], [0, 1, 0, 2], 3), 9)
    assert random_answer(table, 3).tolist() == pytest.approx([0.25] * 3 + [0.0] * 3 + [1 / 12] * 3)
    drawn = sum_draws(
        [[1.0, 0.0]] * 8, made_up=MadeUp(np.array([[0.0, 1.0], [0.0, 9.0]]), np.array([2.0, 0.0]))
    )
    assert drawn.sum(axis=1) == pytest.approx(8.0)
    assert (drawn[:, 1] / 8.0).mean() == pytest.approx(0.2, abs=0.01)


def test_chunks_neither_lose_nor_change_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.random.default_rng(1).random((20, 3))
    whole = sum_draws(table, rounds=101)
    monkeypatch.setattr("ensue.stats.resampling._CHUNK_NUMBERS", 200)
    assert sum_draws(table, rounds=101) == pytest.approx(whole)


def test_what_cannot_be_resampled_is_refused() -> None:
    with pytest.raises(ValueError, match="not of shape"):
        sum_draws([1, 2])
    with pytest.raises(ValueError, match="2 items but 1 cluster"):
        sum_draws([[1], [2]], ["a"])
    with pytest.raises(ValueError, match="one round"):
        sum_draws([[1]], rounds=0)


def test_draws_are_two_thousand_with_seed_nought_unless_said_otherwise() -> None:
    table = np.random.default_rng(5).random((9, 2))
    assert sum_draws(table).tolist() == sum_draws(table, None, rounds=2_000, seed=0).tolist()
    cells = [0, 1, 3, 3]
    assert confusion_draws(cells, 2).tolist() == confusion_draws(cells, 2, rounds=2_000, seed=0).tolist()
    assert sum_draws(table, rounds=1).shape == (1, 2)


def test_draws_by_the_formula() -> None:
    """Each kind of cluster has a gamma draw of as many units as there are, in the order of its numbers."""
    table = [[2.0, 1.0], [0.0, 5.0], [1.0, 0.5], [1.0, 0.5], [3.0, 0.0]]
    clusters = ["a", "b", "c", "c", "d"]
    made_up = MadeUp(np.array([[1.0, 1.0], [9.0, 9.0], [4.0, 0.0]]), np.array([0.5, 0.0, 1.5]))
    kinds = np.array([[0.0, 5.0], [2.0, 1.0], [3.0, 0.0], [1.0, 1.0], [4.0, 0.0]])
    weights = np.random.default_rng(3).standard_gamma([1, 2, 1, 0.5, 1.5], size=(7, 5))
    expected = 4 * weights / weights.sum(axis=1, keepdims=True) @ kinds
    found = sum_draws(table, clusters, made_up=made_up, rounds=7, seed=3)
    np.testing.assert_allclose(found, expected)


def test_tables_of_classes_have_one_answer_at_random_made_up_for_each_cluster() -> None:
    cells, clusters = [0, 0, 3, 1], ["a", "a", "b", "c"]
    table = one_hot(cells, 4)
    guess = MadeUp(np.eye(4) * (4 / 3), random_answer(table, 2))
    expected = sum_draws(table, clusters, made_up=guess, rounds=9, seed=1).reshape(9, 2, 2)
    assert confusion_draws(cells, 2, clusters, rounds=9, seed=1).tolist() == expected.tolist()
    alone = MadeUp(np.eye(4), random_answer(table, 2))
    expected = sum_draws(table, made_up=alone, rounds=9, seed=1).reshape(9, 2, 2)
    assert confusion_draws(cells, 2, rounds=9, seed=1).tolist() == expected.tolist()


def test_narrow_numbers_are_summed_in_double() -> None:
    table = np.array([[3000.0, 1.0], [2001.0, 7.0], [4.0, 3000.0]])
    found = sum_draws(table.astype(np.float16), ["a", "a", "b"], rounds=5)
    assert found.tolist() == sum_draws(table, ["a", "a", "b"], rounds=5).tolist()
    assert one_hot(np.array([1.0, 0.0]), 2).tolist() == [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("wrong", [[1.0], [], [[]], [[[1.0]]]])
def test_what_is_no_table_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="a row an item, not of shape"):
        sum_draws(wrong)  # type: ignore[arg-type]


def test_clusters_are_summed_in_order_of_appearance() -> None:
    table = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, 0.0]])
    assert table_of_clusters(table, ["q", "p", "q"]).tolist() == [[5.0, 0.0], [2.0, 1.0]]
    assert cluster_codes(None, 3).tolist() == [0, 1, 2]
    assert cluster_codes(None, 3).dtype == cluster_codes("aba", 3).dtype == np.int64
