"""Accuracy, F1 and Matthews correlation of classes, each from counts of what was gold and what was given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Every metric takes counts [..., classes, classes], gold by row and given by column, and gives [...]: one table
# gives one number, the tables of all rounds of a bootstrap give all of its numbers at once.
Counts = NDArray[np.float64] | NDArray[np.int64]
Numbers = NDArray[np.float64]


def confusion(gold: ArrayLike, given: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Count how often each class was given where each was gold; classes are numbers from 0.

    >>> confusion([0, 1, 1, 1], [0, 1, 1, 0], 2).tolist()
    [[1, 0], [1, 2]]
    """
    cells = confusion_cells(gold, given, classes)
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def confusion_cells(gold: ArrayLike, given: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Return the cell of the flattened confusion table that each pair of gold and given falls into."""
    rows, columns = np.asarray(gold, dtype=np.int64), np.asarray(given, dtype=np.int64)
    if rows.ndim != 1 or rows.shape != columns.shape or len(rows) == 0:
        raise ValueError(
            f"A confusion table needs two flat lists of equal length, not {rows.shape} and {columns.shape}."
        )
    if min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= classes:
        raise ValueError(f"Class numbers lie between 0 and {classes - 1}.")
    return rows * classes + columns


def class_counts(counts: Counts) -> tuple[Numbers, Numbers, Numbers]:
    """Return of each class how often it was gold, how often it was given, and how often it was both."""
    table = _table(counts)
    return table.sum(axis=-1), table.sum(axis=-2), np.diagonal(table, axis1=-2, axis2=-1)


def accuracy(counts: Counts) -> Numbers:
    """Return the share of right answers; 0 of none.

    >>> float(accuracy(confusion([0, 1, 1, 1], [0, 1, 1, 0], 2)))
    0.75
    """
    table = _table(counts)
    return _ratio(np.trace(table, axis1=-2, axis2=-1), table.sum(axis=(-2, -1)))


def class_f1(counts: Counts) -> Numbers:
    """Return F1 of every class [..., classes]; 0 for a class neither gold nor given, as scikit-learn has it."""
    gold, given, both = class_counts(counts)
    return _ratio(2.0 * both, gold + given)


def f1(counts: Counts, positive: int = 1) -> Numbers:
    """Return F1 of one class, the second where there are two.

    >>> float(f1(confusion([0, 1, 1, 1], [0, 1, 1, 0], 2)))
    0.8
    """
    return np.asarray(class_f1(counts)[..., positive])


def macro_f1(counts: Counts) -> Numbers:
    """Return the unweighted mean of the F1 of each class that is gold or given somewhere.

    >>> round(float(macro_f1(confusion([0, 1, 1, 1], [0, 1, 1, 0], 3))), 6)
    0.733333
    """
    gold, given, _ = class_counts(counts)
    return _ratio(class_f1(counts).sum(axis=-1), ((gold + given) > 0).sum(axis=-1))


def matthews(counts: Counts) -> Numbers:
    """Return Gorodkin's correlation of K classes: Matthews correlation for two, R3 for three.

    Where all gold or all given answers are of one class there is no correlation; that counts as 0.

    >>> round(float(matthews(confusion([0, 1, 1, 1], [0, 1, 1, 0], 2))), 6)
    0.57735
    """
    gold, given, both = class_counts(counts)
    total, right = gold.sum(axis=-1), both.sum(axis=-1)
    covariance = right * total - (gold * given).sum(axis=-1)
    spread_gold = total**2 - (gold**2).sum(axis=-1)
    spread_given = total**2 - (given**2).sum(axis=-1)
    return _ratio(covariance, np.sqrt(spread_gold * spread_given))


def _table(counts: Counts) -> Numbers:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim < 2 or table.shape[-1] != table.shape[-2]:
        raise ValueError(f"Counts of gold and given are a square table, not of shape {table.shape}.")
    return table


def _ratio(above: Numbers, below: Counts) -> Numbers:
    """Divide, with 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
