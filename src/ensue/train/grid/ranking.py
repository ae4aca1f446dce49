"""A linear ranker of texts above their shuffled versions: a classifier of differences, by scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.lazy import from_extra
from ensue.progress import Progress, ignore
from ensue.train.grid.examples import document_accuracy

Numbers = npt.NDArray[np.float64]
# Nearly every fit ends long before.
_MOST_ROUNDS = 1_000


class Pairs(NamedTuple):
    """Features of a document less those of a shuffled version, pairs × features, and the document of each pair."""

    differences: Numbers
    documents: npt.NDArray[np.int_]

    def of(self, chosen: npt.NDArray[np.bool_]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.differences[chosen], self.documents[chosen])


class Chosen(NamedTuple):
    """The value of C that cross-validation chose, and the accuracy of each that was tried."""

    penalty: float
    accuracies: dict[float, float]


class Fitted(NamedTuple):
    """Weights of the features, and how many rounds the solver took."""

    weights: Numbers
    rounds: int


def fit_ranker(pairs: Pairs, penalty: float, ranker: str) -> Fitted:
    """Return weights under which differences are above 0.

    Features are divided by their spread over the pairs while they are fitted, so that C means the same for all; the
    weights returned are for features as they are. Every second difference is turned round, as a classifier needs
    both signs; without an intercept the fit is the same whichever are.
    """
    spread = np.sqrt((pairs.differences**2).mean(axis=0))
    scale = np.where(spread > 0, spread, 1.0)
    signs = np.where(np.arange(len(pairs.differences)) % 2, -1, 1)
    classifier = _classifier(ranker, penalty)
    with warnings.catch_warnings():
        # A fit that stops short of its end is judged by held-out documents like any other.
        warnings.filterwarnings("ignore", "Liblinear failed to converge")
        warnings.filterwarnings("ignore", "lbfgs failed to converge")
        classifier.fit(pairs.differences / scale * signs[:, None], signs)
    return Fitted(classifier.coef_[0] / scale, int(np.max(classifier.n_iter_)))


def _classifier(ranker: str, penalty: float) -> Any:
    name = "svm:LinearSVC" if ranker == "svm" else "linear_model:LogisticRegression"
    made = from_extra(f"sklearn.{name}", "Fitting a ranker", "scikit-learn", "grid")
    more = {"dual": False} if ranker == "svm" else {}
    return made(C=penalty, fit_intercept=False, max_iter=_MOST_ROUNDS, **more)


def accuracy(pairs: Pairs, weights: Numbers) -> float:
    """Return how often documents are rated above their versions, the mean over documents."""
    margins = pairs.differences @ weights
    return document_accuracy([margins[pairs.documents == each] for each in np.unique(pairs.documents)])


def choose_penalty(
    pairs: Pairs,
    penalties: Sequence[float],
    *,
    folds: int,
    ranker: str,
    seed: int,
    progress: Progress = ignore,
) -> Chosen:
    """Choose C by cross-validation over documents, all versions of one in one fold; of equals the smallest wins."""
    documents = np.unique(pairs.documents)
    if len(documents) < 2:
        raise EnsueError("Cross-validation needs two training documents or more; give more --data.")
    # Dealt out one after another, in an order of the seed's.
    fold_of = dict(
        zip(
            np.random.default_rng(seed).permutation(documents), np.arange(len(documents)) % folds, strict=True
        )
    )
    folded = np.array([fold_of[document] for document in pairs.documents])
    sizes = {fold: sum(1 for each in fold_of.values() if each == fold) for fold in set(fold_of.values())}
    found: dict[float, float] = {}
    for done, penalty in enumerate(sorted(penalties), 1):
        right = 0.0
        for fold, size in sizes.items():
            weights = fit_ranker(pairs.of(folded != fold), penalty, ranker).weights
            right += size * accuracy(pairs.of(folded == fold), weights)
        found[penalty] = right / len(documents)
        progress(done, len(penalties), "values of C")
    return Chosen(max(found, key=lambda penalty: found[penalty]), found)
