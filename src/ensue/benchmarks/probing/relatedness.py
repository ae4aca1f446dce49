"""The relatedness head of SICK-R and STS-B: a softmax over whole scores whose expected value is the answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.rules import Graded, Related, Rules, check_features
from ensue.errors import EnsueError

# As the original: no weight decay, dev checked every 50 epochs, stopped at the fourth failure in all.
RELATEDNESS = Rules(decays=(0.0,), check_every=50, max_epochs=1000, failures=4)


def spread_scores(scores: NDArray[np.float64], highest: int = 5) -> NDArray[np.float32]:
    """Each score as probabilities of the whole scores 1 to `highest`, on the two around it.

    >>> spread_scores(np.array([3.25])).tolist()
    [[0.0, 0.0, 0.75, 0.25, 0.0]]

    Below 1 there is no lower whole score and, as in the original, its share is left out.
    """
    below = np.floor(scores).astype(np.int64)
    above = scores - below
    # One column for the score 0, which is cut off again, and one for what lies above the highest.
    spread = np.zeros((len(scores), highest + 2))
    places = np.arange(len(scores))
    spread[places, below] = 1.0 - above
    spread[places, below + 1] += above
    return spread[:, 1 : highest + 1].astype(np.float32)


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Pearson's correlation; NaN where either side does not vary."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0.0 else float("nan")


def fit_relatedness(
    train: Graded,
    dev: Graded,
    test: Graded | None,
    *,
    highest: int = 5,
    rules: Rules = RELATEDNESS,
    seed: int = 0,
    device: str = "auto",
) -> Related:
    """Train on `train`, keep the epoch with the best Pearson on `dev`, predict `dev` and `test`.

    The loss is the mean squared difference between the softmax and the spread gold score.
    """
    if len(rules.decays) != 1 or rules.hidden:
        raise EnsueError("The relatedness head has no hidden layer and one weight decay.")
    for name, data in (("training", train), ("dev", dev), ("test", test)):
        if data is not None:
            check_features(name, data.x, len(data.y), train.x.shape[1] if train.x.ndim == 2 else None)
            _check_scores(name, data.y, highest)
    if np.ptp(dev.y) == 0.0:
        raise EnsueError("All gold scores of the dev split are the same: no correlation can be computed.")
    began = time.perf_counter()
    from ensue.benchmarks.probing import training
    from ensue.benchmarks.probing.stack import squared_slope

    with training.training_on(device, train.x.shape[1], highest) as where:
        import torch

        targets = torch.from_numpy(spread_scores(train.y, highest)).to(where)
        table, dev_x = training.Table(training.upload(train.x, where), targets), training.upload(dev.x, where)

        def judge(_: int, logits: Any) -> Sequence[float]:
            return [pearson(_expected(logits[:, 0]), dev.y)]

        rows = np.arange(len(train.y))[None]
        ((kept,),) = training.train(table, rows, [dev_x], judge, rules, squared_slope, seed)
        if not kept.weights:
            raise EnsueError("The relatedness head gave all dev pairs the same score: check the features.")
        on_dev = _expected(training.predict(kept, dev_x))
        on_test = np.empty(0)
        if test is not None:
            on_test = _expected(training.predict(kept, training.upload(test.x, where)))
    return Related(kept.epochs, kept.score, on_dev, on_test, time.perf_counter() - began)


def _expected(logits: Any) -> NDArray[np.float64]:
    chances = logits.softmax(-1).double().cpu().numpy()
    expected: NDArray[np.float64] = chances @ np.arange(1.0, chances.shape[1] + 1.0)
    return expected


def _check_scores(name: str, scores: NDArray[np.float64], highest: int) -> None:
    wrong = ~((scores >= 0.0) & (scores <= highest))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise EnsueError(
            f"Row {row} of the {name} split has score {scores[row]}, not one from 0 to {highest}."
        )
