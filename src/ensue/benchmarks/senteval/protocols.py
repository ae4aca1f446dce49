"""The two ways classifiers are trained: `paper`, as SentEval's code does, and `converged`, to the optimum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.converged import fit_converged, fit_ridge
from ensue.benchmarks.probing.fitting import (
    cross_validate,
    fit,
    fit_by_folds,
    fit_relatedness,
    stratified_folds,
)
from ensue.benchmarks.probing.rules import DISCOEVAL, Data, Graded

FOLDS = 10
Labels = NDArray[np.int64]
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class PaperProtocol:
    """Adam with early stopping, weight decay by dev or by folds; SentEval's "comparable" settings."""

    seed: int
    device: str

    def split(self, classes: int, train: Data, dev: Data, test: Data) -> tuple[Labels, Labels]:
        """Predict dev and test."""
        fitted = fit(train, dev, test, classes, DISCOEVAL, seed=self.seed, device=self.device)
        return fitted.dev_predictions, fitted.test_predictions

    def folds(self, classes: int, train: Data, test: Data) -> tuple[Labels, Labels]:
        """Predict train, each row by a classifier that had not been trained on it, and test."""
        fitted = fit_by_folds(
            train, test, classes, DISCOEVAL, folds=FOLDS, seed=self.seed, device=self.device
        )
        return fitted.dev_predictions, fitted.test_predictions

    def nested(self, classes: int, data: Data) -> tuple[float, Labels]:
        """Return the mean dev accuracy and a prediction for every row by a classifier that never saw it."""
        found = cross_validate(data, classes, DISCOEVAL, folds=FOLDS, seed=self.seed, device=self.device)
        return found.dev_accuracy, found.predictions

    def relatedness(self, train: Graded, dev: Graded, test: Graded) -> tuple[Scores, Scores]:
        """Score dev and test."""
        fitted = fit_relatedness(train, dev, test, seed=self.seed, device=self.device)
        return fitted.dev_predictions, fitted.test_predictions


@dataclass(frozen=True)
class ConvergedProtocol:
    """Standardised features, L-BFGS to the optimum, L2 by dev; relatedness by ridge regression.

    Without a dev split ten stratified folds take turns: one is predicted, the next is dev, eight are trained
    on. A test split is predicted with the first fold of train as dev.
    """

    seed: int
    device: str

    def split(self, classes: int, train: Data, dev: Data, test: Data) -> tuple[Labels, Labels]:
        fitted = fit_converged(train, dev, test, classes, device=self.device)
        return fitted.dev_predictions, fitted.test_predictions

    def folds(self, classes: int, train: Data, test: Data) -> tuple[Labels, Labels]:
        _, on_train = self.nested(classes, train)
        fold = self._folds(train)
        _, on_test = self.split(classes, _rows(train, fold != 0), _rows(train, fold == 0), test)
        return on_train, on_test

    def nested(self, classes: int, data: Data) -> tuple[float, Labels]:
        fold = self._folds(data)
        predictions = np.empty(len(data.y), dtype=np.int64)
        accuracies = []
        for number in range(FOLDS):
            is_test, is_dev = fold == number, fold == (number + 1) % FOLDS
            dev = _rows(data, is_dev)
            on_dev, on_test = self.split(classes, _rows(data, ~(is_test | is_dev)), dev, _rows(data, is_test))
            predictions[is_test] = on_test
            accuracies.append(float((on_dev == dev.y).mean()))
        return float(np.mean(accuracies)), predictions

    def relatedness(self, train: Graded, dev: Graded, test: Graded) -> tuple[Scores, Scores]:
        return fit_ridge(train, dev, test)

    def _folds(self, data: Data) -> Labels:
        return stratified_folds(data.y, FOLDS, self.seed)


Classifiers = PaperProtocol | ConvergedProtocol
PROTOCOLS: dict[str, type[Classifiers]] = {"paper": PaperProtocol, "converged": ConvergedProtocol}


def _rows(data: Data, chosen: NDArray[np.bool_]) -> Data:
    return Data(data.x[chosen], data.y[chosen])
