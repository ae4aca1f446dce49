"""How far annotators agree beyond chance: the kappas of Cohen (two annotators) and Fleiss (two or more an item), and
Krippendorff's alpha, where ratings may be missing.

scipy has no alpha. That of all rounds of a bootstrap at once is over twenty times as fast as one after the other
(bench/agreement.py).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def agreement_sums(counts: ArrayLike) -> Numbers:
    """Return what kappa needs of each item, to be added up: shares of votes by category, and of pairs that agree."""
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"Kappa needs votes by item and category, not of shape {table.shape}.")
    raters = table.sum(axis=1)
    if raters.min() < 2:
        raise ValueError("Kappa needs at least two annotators for every item.")
    agreeing = (table * (table - 1.0)).sum(axis=1) / (raters * (raters - 1.0))
    return np.column_stack([table / raters[:, None], agreeing, np.ones(len(table))])


def kappa_of_sums(sums: Numbers) -> Numbers:
    """Return kappa of summed statistics [..., categories + 2], such as those of each round of a bootstrap."""
    given, agreeing, items = sums[..., :-2], sums[..., -2], sums[..., -1]
    total = given.sum(axis=-1)
    expected = ((given / total[..., None]) ** 2).sum(axis=-1)
    observed = agreeing / items
    # Where every vote fell on one category, agreement cannot exceed what chance gives.
    undefined = (given == total[..., None]).any(axis=-1)
    return np.asarray((observed - expected) / np.where(undefined, np.nan, 1.0 - expected))


def kappa_of_tables(tables: Numbers) -> Numbers:
    """Return Cohen's kappa of tables [..., labels, labels] of how often one said this and the other that."""
    total = tables.sum(axis=(-2, -1))
    observed = np.trace(tables, axis1=-2, axis2=-1) / total
    margins = tables.sum(axis=-1) * tables.sum(axis=-2)
    expected = margins.sum(axis=-1) / total**2
    # Where both gave one label throughout, agreement cannot exceed what chance gives.
    undefined = (np.diagonal(tables, axis1=-2, axis2=-1) == total[..., None]).any(axis=-1)
    return np.asarray((observed - expected) / np.where(undefined, np.nan, 1.0 - expected))


def coincidences(ratings: ArrayLike) -> tuple[Numbers, Numbers]:
    """Return the distinct values, and for each item how often each pair of them was given [items, values, values].

    An item that m annotators rated holds m (m - 1) ordered pairs, each of which counts 1 / (m - 1), so that
    an item weighs as many as its ratings. An item with one rating has no pair and counts nothing. What is
    added up over items, such as those of a round of a bootstrap, gives alpha.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or table.size == 0 or np.isinf(table).any():
        raise ValueError(f"Alpha needs a table of finite ratings, a row an item, not of shape {table.shape}.")
    given = ~np.isnan(table)
    values, codes = np.unique(table[given], return_inverse=True)
    if not (given.sum(axis=1) > 1).any():
        raise ValueError("Alpha needs at least one item with two ratings.")
    counts = np.zeros((len(table), len(values)))
    np.add.at(counts, (np.nonzero(given)[0], codes), 1.0)
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    diagonal = np.arange(len(values))
    pairs[:, diagonal, diagonal] -= counts
    return values, pairs / np.maximum(raters - 1.0, 1.0)[:, None, None]


def alpha_of_coincidences(pairs: Numbers, values: Numbers, level: Level = "nominal") -> Numbers:
    """Return alpha of summed coincidences [..., values, values]; nan where only one value was given.

    It is 1 - observed / expected disagreement, in which a pair of values weighs their squared distance.
    """
    given = pairs.sum(axis=-1)
    total = given.sum(axis=-1)
    squared = _squared_distances(level, values, given)
    observed = (pairs * squared).sum(axis=(-2, -1)) / total
    by_chance = given[..., :, None] * given[..., None, :]
    expected = (by_chance * squared).sum(axis=(-2, -1)) / (total * (total - 1.0))
    undefined = (given == total[..., None]).any(axis=-1)
    return np.asarray(1.0 - observed / np.where(undefined, np.nan, expected))


def _squared_distances(level: Level, values: Numbers, given: Numbers) -> Numbers:
    """Return how far apart two values are, squared [..., values, values]."""
    if level == "nominal":
        return np.asarray(1.0 - np.eye(len(values)))
    if level == "interval":
        return np.asarray((values[:, None] - values[None, :]) ** 2)
    if level == "ordinal":
        # The ratings between two values, half of those at either end counted in: the distance of mean ranks.
        middles = np.cumsum(given, axis=-1) - given / 2.0
        return np.asarray((middles[..., :, None] - middles[..., None, :]) ** 2)
    raise ValueError(f"Alpha knows nominal, ordinal and interval ratings, not {level!r}.")
