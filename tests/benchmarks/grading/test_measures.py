"""Metrics that organisers name, against scikit-learn, SciPy and sums by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from ensue.benchmarks.grading import measures
from ensue.errors import EnsueError

draw = random.Random(4)
N = 60
CLASSES = ("blue", "green", "red")
GOLD = [draw.choice(CLASSES) for _ in range(N)]
GIVEN = [one if draw.random() < 0.6 else draw.choice(CLASSES) for one in GOLD]
ALONE = [str(n) for n in range(N)]


def test_labels_are_scored_as_scikit_learn_scores_them() -> None:
    found = measures.of_labels(("accuracy", "f1", "macro_f1", "mcc"), GOLD, GIVEN, ALONE, CLASSES, "red")
    assert found["accuracy"].value == pytest.approx(accuracy_score(GOLD, GIVEN))
    assert found["f1"].value == pytest.approx(f1_score(GOLD, GIVEN, labels=["red"], average=None)[0])
    assert found["macro_f1"].value == pytest.approx(f1_score(GOLD, GIVEN, average="macro"))
    assert found["mcc"].value == pytest.approx(matthews_corrcoef(GOLD, GIVEN))
    for figure in found.values():
        low, high = figure.interval()
        assert low is not None
        assert high is not None
        assert low < figure.value < high


def test_of_two_classes_the_second_is_positive_unless_another_is_named() -> None:
    gold, given = ["no", "yes", "yes", "no"], ["yes", "yes", "no", "no"]
    ids = list("abcd")
    assert measures.of_labels(["f1"], gold, given, ids, ("no", "yes"), None)["f1"].value == 0.5
    given = ["no", "yes", "yes", "yes"]
    # Yes: three given, two right of two. No: one given, one right of two.
    assert measures.of_labels(["f1"], gold, given, ids, ("no", "yes"), None)["f1"].value == pytest.approx(0.8)
    assert measures.of_labels(["f1"], gold, given, ids, ("no", "yes"), "no")["f1"].value == pytest.approx(
        2 / 3
    )


def test_numbers_are_correlated_as_scipy_does() -> None:
    x = [draw.gauss(0, 1) for _ in range(N)]
    y = [one + draw.gauss(0, 1) for one in x]
    found = measures.of_numbers(("pearson", "spearman", "kendall"), x, y, ALONE)
    assert found["pearson"].value == pytest.approx(pearsonr(x, y).statistic)
    assert found["spearman"].value == pytest.approx(spearmanr(x, y).statistic)
    assert found["kendall"].value == pytest.approx(kendalltau(x, y).statistic)
    constant = measures.of_numbers(("pearson", "kendall"), x, [1.0] * N, ALONE)
    assert [one.value for one in constant.values()] == [0.0, 0.0]


def test_texts_are_compared_with_the_best_of_their_references() -> None:
    gold = [("The mill", "a grinder"), ("Lund",), ("four boats left",)]
    given = ["a mill", "Malmö", "four boats"]
    found = measures.of_texts(("exact_match", "token_f1", "rouge1"), gold, given, list("abc"))
    # Articles and capitals count for nothing; two words of three are shared in the last.
    assert found["exact_match"].value == pytest.approx(1 / 3)
    assert found["token_f1"].value == pytest.approx((1 + 0 + 0.8) / 3)
    # ROUGE keeps the article: "a mill" shares one word of two with each reference.
    assert found["rouge1"].value == pytest.approx((0.5 + 0 + 0.8) / 3)
    assert found["token_f1"].n == 3


def test_items_of_one_cluster_are_resampled_together() -> None:
    pairs = [str(n // 2) for n in range(N)]
    gold = [one for one in GOLD[: N // 2] for _ in range(2)]
    given = [one for one in GIVEN[: N // 2] for _ in range(2)]
    together = measures.of_labels(["accuracy"], gold, given, pairs, CLASSES, None)["accuracy"]
    apart = measures.of_labels(["accuracy"], gold, given, ALONE, CLASSES, None)["accuracy"]
    assert (together.units, apart.units) == (N // 2, N)
    assert np.std(together.draws) > 1.2 * np.std(apart.draws)  # type: ignore[arg-type]
    lonely = measures.of_labels(["accuracy"], gold, given, ["one"] * N, CLASSES, None)["accuracy"]
    assert lonely.interval() == (None, None)


def test_metrics_of_one_task_are_of_one_kind() -> None:
    assert measures.kind_of(["mcc", "f1"]) == "label"
    assert measures.kind_of(["rougeL"]) == "text"
    with pytest.raises(EnsueError, match="there is no metric 'f2'; there are accuracy, f1, macro_f1"):
        measures.kind_of(["f2"])
    with pytest.raises(EnsueError, match="accuracy, pearson are of label and of numbers"):
        measures.kind_of(["accuracy", "pearson"])
