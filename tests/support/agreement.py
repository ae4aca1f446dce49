"""Kappas and alpha of one table each, by what `metrics.agreement` has for all rounds of a bootstrap at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.metrics.agreement import (
    Level,
    agreement_sums,
    alpha_of_coincidences,
    coincidences,
    kappa_of_sums,
    kappa_of_tables,
)


def votes(labels: ArrayLike, categories: int) -> NDArray[np.int64]:
    """Count how often each category was chosen for each item [items, categories], from labels [items, annotators].

    >>> votes([[0, 0, 1], [1, 1, 1]], 2).tolist()
    [[2, 1], [0, 3]]
    """
    chosen = np.asarray(labels)
    if chosen.ndim != 2 or chosen.size == 0 or chosen.min() < 0 or chosen.max() >= categories:
        raise ValueError(f"Labels are a table of numbers from 0 to {categories - 1}, a row an item.")
    return np.asarray((chosen[:, :, None] == np.arange(categories)).sum(axis=1))


def fleiss_kappa(counts: ArrayLike) -> float:
    """Return the agreement beyond chance of two or more annotators an item; nan where all chose one category.

    Where some items have more annotators than others, every item weighs alike (Gwet 2014, chapter 2).

    >>> round(fleiss_kappa([[2, 1], [0, 3]]), 6)
    0.25
    """
    return float(kappa_of_sums(agreement_sums(counts).sum(axis=0)))


def cohen_kappa(one: ArrayLike, other: ArrayLike) -> float:
    """Return the agreement beyond chance of two annotators of the same items; nan where both gave one label.

    >>> cohen_kappa(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    0.5
    """
    a, b = np.asarray(one), np.asarray(other)
    if a.ndim != 1 or a.shape != b.shape or a.size == 0:
        raise ValueError(f"Kappa needs two lists of labels of the same items, not {a.shape} and {b.shape}.")
    labels, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    table = np.zeros((len(labels), len(labels)))
    np.add.at(table, (codes[: len(a)], codes[len(a) :]), 1.0)
    return float(kappa_of_tables(table))


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float:
    """Return alpha of ratings [items, annotators], nan where one is missing; nan where all ratings are the same.

    >>> nan = float("nan")
    >>> round(krippendorff_alpha([[1, 1], [1, 0], [0, 0], [nan, 1], [0, 0]]), 6)
    0.533333
    """
    values, pairs = coincidences(ratings)
    return float(alpha_of_coincidences(pairs.sum(axis=0), values, level))
