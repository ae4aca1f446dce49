"""How far annotators agree beyond chance: Fleiss' kappa."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


def votes(labels: ArrayLike, categories: int) -> NDArray[np.int64]:
    """How often each category was chosen for each item [items, categories], from labels [items, annotators].

    >>> votes([[0, 0, 1], [1, 1, 1]], 2).tolist()
    [[2, 1], [0, 3]]
    """
    chosen = np.asarray(labels, dtype=np.int64)
    if chosen.ndim != 2 or chosen.size == 0 or chosen.min() < 0 or chosen.max() >= categories:
        raise ValueError(f"Labels are a table of numbers from 0 to {categories - 1}, a row an item.")
    return np.asarray((chosen[:, :, None] == np.arange(categories)).sum(axis=1), dtype=np.int64)


def fleiss_kappa(counts: ArrayLike) -> float:
    """Agreement beyond chance of equally many annotators an item; nan where all chose one category throughout.

    >>> round(fleiss_kappa([[2, 1], [0, 3]]), 6)
    0.25
    """
    return float(kappa_of_sums(agreement_sums(counts).sum(axis=0)))


def agreement_sums(counts: ArrayLike) -> Numbers:
    """What kappa needs of each item, to be added up: votes by category, and the share of pairs that agree."""
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"Kappa needs votes by item and category, not of shape {table.shape}.")
    raters = table.sum(axis=1)
    if raters[0] < 2 or not (raters == raters[0]).all():
        raise ValueError("Kappa needs equally many annotators for every item, at least two.")
    agreeing = (table * (table - 1.0)).sum(axis=1) / (raters * (raters - 1.0))
    return np.column_stack([table, agreeing, np.ones(len(table))])


def kappa_of_sums(sums: Numbers) -> Numbers:
    """Kappa of summed statistics [..., categories + 2], such as those of each round of a bootstrap."""
    given, agreeing, items = sums[..., :-2], sums[..., -2], sums[..., -1]
    total = given.sum(axis=-1)
    expected = ((given / total[..., None]) ** 2).sum(axis=-1)
    observed = agreeing / items
    # Where every vote fell on one category, agreement cannot exceed what chance gives.
    undefined = (given == total[..., None]).any(axis=-1)
    return np.asarray((observed - expected) / np.where(undefined, np.nan, 1.0 - expected))
