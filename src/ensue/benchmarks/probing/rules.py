"""How a probing classifier is trained, what it is given and what it gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.errors import EnsueError

# Rows looked at in one go for values that are not finite: a few megabytes, however large the features.
_ROWS_AT_ONCE = 2048


@dataclass(frozen=True)
class Rules:
    """Protocol `paper`: Adam on mini-batches, weight decay and epochs chosen on dev accuracy."""

    decays: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    hidden: int = 0
    check_every: int = 4
    max_epochs: int = 200
    failures: int = 6
    batch: int = 64
    learning_rate: float = 1e-3


DISCOEVAL = Rules()
# What the released code sets for three groups beyond the paper's text: coherence is checked every 15 epochs
# until the ninth failure (its last block of epochs may pass the 200th), and neither coherence nor sections
# nor relations have a weight decay to choose.
COHERENCE = Rules(decays=(1e-9,), hidden=2000, check_every=15, max_epochs=210, failures=9)
SECTIONS = Rules(decays=(1e-9,))
RELATIONS = Rules(decays=(1e-9,), check_every=1, max_epochs=15)


@dataclass(frozen=True)
class Data:
    """The rows of one split: features [rows, size] and the class of each row."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]


@dataclass(frozen=True)
class Graded:
    """The rows of one split whose gold is a score, such as how related two sentences are."""

    x: NDArray[np.float32]
    y: NDArray[np.float64]


class FittedClassifier(NamedTuple):
    """The kept checkpoint of the chosen weight decay; `epochs` is how many it had been trained for."""

    decay: float
    epochs: int
    dev_accuracy: float
    dev_predictions: NDArray[np.int64]
    test_predictions: NDArray[np.int64]
    seconds: float


class CrossValidated(NamedTuple):
    """Nested cross-validation: mean inner accuracy of the chosen decays, and out-of-fold predictions."""

    dev_accuracy: float
    predictions: NDArray[np.int64]
    decays: tuple[float, ...]


class Related(NamedTuple):
    """A fitted relatedness head: expected scores, and their Pearson correlation with the gold on dev."""

    epochs: int
    dev_pearson: float
    dev_predictions: NDArray[np.float64]
    test_predictions: NDArray[np.float64]


def check_features(name: str, x: NDArray[np.float32], rows: int, size: int | None = None) -> None:
    """Raise unless `x` is a finite table with one row a label and, where given, `size` columns."""
    if x.ndim != 2 or x.shape[1] == 0:
        raise EnsueError(f"The features of the {name} split must be a table, not of shape {x.shape}.")
    if len(x) == 0:
        raise EnsueError(f"The {name} split is empty: a classifier needs rows to be trained and chosen on.")
    if len(x) != rows:
        raise EnsueError(f"The {name} split has {len(x)} rows of features but {rows} labels.")
    if size is not None and x.shape[1] != size:
        raise EnsueError(f"The {name} split has {x.shape[1]} features a row, the training split {size}.")
    for start in range(0, len(x), _ROWS_AT_ONCE):
        finite = np.isfinite(x[start : start + _ROWS_AT_ONCE]).all(axis=1)
        if not finite.all():
            row = start + int(np.argmin(finite))
            raise EnsueError(f"Row {row} of the {name} split has features that are NaN or infinite.")


def check_splits(classes: int, train: Data, **others: Data) -> None:
    """Raise unless every split has finite features of one size and labels below `classes`."""
    for name, data in {"training": train, **others}.items():
        check_features(name, data.x, len(data.y), train.x.shape[1] if data.x.ndim == 2 else None)
        wrong = (data.y < 0) | (data.y >= classes)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise EnsueError(
                f"Row {row} of the {name} split has label {data.y[row]}, which is not among 0 to {classes - 1}."
            )
    if len(np.unique(train.y)) < 2:
        raise EnsueError("All rows of the training split have the same label: there is nothing to learn.")
