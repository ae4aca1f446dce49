"""Protocol `converged`, trained to the optimum on standardised features: logistic regression, ridge for scores."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.benchmarks.probing.rules import Data, FittedClassifier, Graded, check_splits
from ensue.benchmarks.probing.training import device_of
from ensue.errors import EnsueError, RunFailed
from ensue.metrics.correlation import pearson

L2 = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Ridge penalties per training row; the features are standardised, so their scale does not matter.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def scale_of(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means and deviations to standardise features by; columns that do not vary are only centred."""
    mean = x.mean(axis=0, dtype=np.float64)
    deviation = x.std(axis=0, dtype=np.float64)
    # Rounding gives a constant column a deviation of some millionths of its value.
    constant = deviation <= 1e-6 * np.abs(mean)
    return mean, np.where(constant, 1.0, deviation)


def fit_converged(
    train: Data,
    dev: Data,
    test: Data,
    classes: int,
    *,
    l2: Sequence[float] = L2,
    tolerance: float = 1e-6,
    max_iterations: int = 5000,
    device: str = "auto",
) -> FittedClassifier:
    """Minimise mean cross-entropy + l2/2 · |weights|² by L-BFGS for every `l2`, chosen on dev accuracy.

    Biases are not penalised. A fit has converged once no component of the gradient exceeds `tolerance`. The
    first of equally good `l2` is taken; there is no draw, so there is no seed. In what is returned, `decay` is
    the `l2` chosen and `epochs` its L-BFGS iterations; from strong to weak, each fit starts at the last one.
    """
    check_splits(classes, train, dev=dev, test=test)
    if not l2 or min(l2) <= 0.0:
        raise EnsueError("Protocol `converged` needs at least one L2 strength, and all of them above zero.")
    began = time.perf_counter()
    where = device_of(device)
    mean, deviation = (torch.from_numpy(part).to(where) for part in scale_of(train.x))

    def standardised(x: NDArray[np.float32]) -> Any:
        return torch.tensor(np.asarray(x), device=where).double().sub_(mean).div_(deviation)

    with torch.no_grad():
        problem = Regression(standardised(train.x), torch.from_numpy(train.y).to(where), classes)
        dev_x = standardised(dev.x)
        found: dict[float, tuple[float, int, Any]] = {}
        for strength in sorted(set(l2), reverse=True):
            iterations = problem.solve(strength, tolerance, max_iterations)
            on_dev = problem.predict(dev_x)
            accuracy = float(np.mean(on_dev == dev.y))
            found[strength] = (accuracy, iterations, problem.weights.clone())
        best = max(l2, key=lambda strength: found[strength][0])
        accuracy, iterations, problem.weights = found[best]
        on_dev = problem.predict(dev_x)
        on_test = problem.predict(standardised(test.x))
    return FittedClassifier(best, iterations, accuracy, on_dev, on_test, time.perf_counter() - began)


class Regression:
    """The loss on one training set in double precision; `weights` [classes, features + 1] end in the bias."""

    def __init__(self, x: Any, y: Any, classes: int) -> None:
        self._x, self._targets = x, torch.nn.functional.one_hot(y, classes).to(x.dtype)
        self.weights = x.new_zeros(classes, x.shape[1] + 1)

    def predict(self, x: Any) -> NDArray[np.int64]:
        """Return the most probable class of every row."""
        classes: NDArray[np.int64] = self._logits(x).argmax(-1).cpu().numpy()
        return classes

    def solve(self, strength: float, tolerance: float, max_iterations: int) -> int:
        """Move `weights` to the minimum; return how many iterations that took."""
        weights = self.weights
        weights.grad = torch.zeros_like(weights)
        optimizer = torch.optim.LBFGS(
            [weights],
            max_iter=max_iterations,
            max_eval=2 * max_iterations,
            tolerance_grad=tolerance,
            tolerance_change=0.0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )
        optimizer.step(lambda: self._loss(strength))
        self._loss(strength)
        left = float(weights.grad.abs().max())
        if not left <= tolerance:
            raise RunFailed(
                f"Protocol `converged` is still at a gradient of {left:.1e} after {max_iterations} iterations "
                f"with L2 {strength:g}; give a larger L2 or tolerance."
            )
        return int(optimizer.state[weights]["n_iter"])

    def _logits(self, x: Any) -> Any:
        return self.weights[:, -1].addmm(x, self.weights[:, :-1].t())

    def _loss(self, strength: float) -> Any:
        """Return the loss at `weights`, whose gradient is written into `weights.grad`."""
        logits = self._logits(self._x)
        logs = logits.log_softmax(-1)
        slope = logs.exp().sub_(self._targets).div_(len(logits))
        penalised, gradient = self.weights[:, :-1], self.weights.grad
        gradient[:, :-1] = slope.t() @ self._x + strength * penalised
        gradient[:, -1] = slope.sum(0)
        fit = -(logs * self._targets).sum() / len(logits)
        return fit + 0.5 * strength * penalised.square().sum()


def fit_ridge(
    train: Graded, dev: Graded, test: Graded, penalties: tuple[float, ...] = PENALTIES
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Score dev and test by ridge regression under the penalty that is best on dev, the first of equals."""
    x = train.x.astype(np.float64)
    middle, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0.0] = 1.0
    x = (x - middle) / spread
    mean = float(train.y.mean())
    # One eigendecomposition serves all penalties.
    values, basis = np.linalg.eigh(x.T @ x / len(x))
    target = basis.T @ (x.T @ (train.y - mean) / len(x))
    on_dev, on_test = (((part.x - middle) / spread) @ basis for part in (dev, test))
    weights = (target / (np.maximum(values, 0.0) + penalty) for penalty in penalties)
    best = max(weights, key=lambda each: pearson(on_dev @ each + mean, dev.y))
    return on_dev @ best + mean, on_test @ best + mean
