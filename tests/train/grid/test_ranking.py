"""The pairwise ranker against scikit-learn called directly, and C chosen over documents."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.svm import LinearSVC

from ensue.errors import EnsueError
from ensue.train.grid.examples import document_accuracy
from ensue.train.grid.ranking import Pairs, accuracy, choose_penalty, fit_ranker


def drawn(documents: int = 12, versions: int = 6, noise: float = 1.0, seed: int = 0) -> Pairs:
    """Pairs whose first two features tell; the fourth is the same for every text."""
    draw = np.random.default_rng(seed)
    differences = draw.normal(0, 1, (documents * versions, 4)) * noise + np.array([1.0, -0.5, 0, 0])
    differences[:, 2] *= 100
    differences[:, 3] = 0
    return Pairs(differences, np.repeat(np.arange(documents), versions))


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("svm", lambda c: LinearSVC(C=c, fit_intercept=False, dual=False)),
        ("logistic", lambda c: LogisticRegression(C=c, fit_intercept=False, tol=1e-6)),
    ],
)
def test_weights_are_those_of_scikit_learn_on_both_signs_of_every_difference(name, made):
    pairs = drawn()
    scale = np.sqrt((pairs.differences**2).mean(0))
    scale[3] = 1
    scaled = pairs.differences / scale
    # Every pair both ways round, each at half the penalty: the same objective as one way round.
    direct = made(0.05).fit(np.concatenate([scaled, -scaled]), np.repeat([1, -1], len(scaled)))
    found = fit_ranker(pairs, 0.1, name).weights
    assert found == pytest.approx(direct.coef_[0] / scale, rel=1e-2, abs=1e-4)
    assert found[3] == 0


def test_accuracy_is_the_mean_over_documents_and_ties_count_half():
    assert document_accuracy([[1.0, 2.0, -1.0, 0.0], [3.0]]) == (2.5 / 4 + 1) / 2
    pairs = Pairs(np.array([[1.0], [2.0], [-1.0], [0.0], [3.0]]), np.array([0, 0, 0, 0, 1]))
    assert accuracy(pairs, np.array([2.0])) == (2.5 / 4 + 1) / 2
    assert accuracy(pairs, np.array([-1.0])) == (1.5 / 4 + 0) / 2


def test_folds_are_of_documents_and_the_best_value_is_chosen():
    """As many folds as documents, so that which are together does not matter, and scikit-learn's grouping serves."""
    pairs = drawn(documents=8, noise=2.0)
    values = [1e-6, 1e-3, 1.0]
    chosen = choose_penalty(pairs, values, folds=8, ranker="svm", seed=5)
    for value in values:
        right = []
        for train, test in GroupKFold(8).split(pairs.differences, groups=pairs.documents):
            inside = np.isin(np.arange(len(pairs.documents)), train)
            weights = fit_ranker(pairs.of(inside), value, "svm").weights
            margins = pairs.differences[test] @ weights
            right.append(np.mean((margins > 0) + 0.5 * (margins == 0)))
        assert chosen.accuracies[value] == pytest.approx(np.mean(right))
    assert chosen.accuracies[chosen.penalty] == max(chosen.accuracies.values())


def test_a_document_is_never_on_both_sides_of_a_fold():
    """Each document has a feature of its own that tells all its pairs: of use only to who has seen the document."""
    documents, versions = 10, 8
    own = np.repeat(np.eye(documents), versions, axis=0) * 5
    noise = np.random.default_rng(1).normal(0, 1e-3, own.shape)
    pairs = Pairs(own + noise, np.repeat(np.arange(documents), versions))
    found = choose_penalty(pairs, [1.0], folds=5, ranker="svm", seed=0).accuracies[1.0]
    assert accuracy(pairs, fit_ranker(pairs, 1.0, "svm").weights) == 1.0
    assert found < 0.9


def test_of_equals_the_smallest_value_wins_and_one_document_is_too_few():
    pairs = drawn(noise=0.01)
    assert choose_penalty(pairs, [10.0, 0.1, 1.0], folds=3, ranker="svm", seed=0).penalty == 0.1
    with pytest.raises(EnsueError, match="two training documents or more"):
        choose_penalty(drawn(documents=1), [1.0], folds=5, ranker="svm", seed=0)
