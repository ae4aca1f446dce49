"""Ridge regression on standardised features, its penalty chosen on dev: relatedness under protocol `converged`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.rules import Graded
from ensue.metrics.correlation import pearson

# Penalties per training row; the features are standardised, so their scale does not matter.
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
Scores = NDArray[np.float64]


def fit_ridge(
    train: Graded, dev: Graded, test: Graded, penalties: tuple[float, ...] = PENALTIES
) -> tuple[Scores, Scores]:
    """Scores for dev and test under the penalty with the best Pearson correlation on dev, the first of equals."""
    x = train.x.astype(np.float64)
    middle, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0.0] = 1.0
    x = (x - middle) / spread
    mean = float(train.y.mean())
    # One eigendecomposition serves all penalties.
    values, basis = np.linalg.eigh(x.T @ x / len(x))
    target = basis.T @ (x.T @ (train.y - mean) / len(x))
    on_dev, on_test = (((part.x - middle) / spread) @ basis for part in (dev, test))
    best: tuple[float, Scores, Scores] | None = None
    for penalty in penalties:
        weights = target / (np.maximum(values, 0.0) + penalty)
        found = on_dev @ weights + mean
        score = pearson(found, dev.y)
        if best is None or score > best[0]:
            best = (score, found, on_test @ weights + mean)
    assert best is not None, "there is at least one penalty"
    return best[1], best[2]
