"""Krippendorff's alpha: how far annotators agree beyond chance, some of whose ratings may be missing.

scipy has no alpha. That of all rounds of a bootstrap at once is over twenty times as fast as one after the other
(bench/agreement.py).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
Level = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(ratings: ArrayLike, level: Level = "nominal") -> float:
    """Alpha of ratings [items, annotators], nan where one is missing; nan where all ratings are the same.

    >>> nan = float("nan")
    >>> round(krippendorff_alpha([[1, 1], [1, 0], [0, 0], [nan, 1], [0, 0]]), 6)
    0.533333
    """
    values, pairs = coincidences(ratings)
    return float(alpha_of_coincidences(pairs.sum(axis=0), values, level))


def coincidences(ratings: ArrayLike) -> tuple[Numbers, Numbers]:
    """The distinct values, and for each item how often each pair of them was given [items, values, values].

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
    np.add.at(counts, (np.nonzero(given)[0], codes.reshape(-1)), 1.0)
    raters = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :]
    diagonal = np.arange(len(values))
    pairs[:, diagonal, diagonal] -= counts
    return values, pairs / np.maximum(raters - 1.0, 1.0)[:, None, None]


def alpha_of_coincidences(pairs: Numbers, values: Numbers, level: Level = "nominal") -> Numbers:
    """Alpha of summed coincidences [..., values, values]; nan where only one value was given.

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
    """How far apart two values are, squared [..., values, values]."""
    if level == "nominal":
        return np.asarray(1.0 - np.eye(len(values)))
    if level == "interval":
        return np.asarray((values[:, None] - values[None, :]) ** 2)
    if level == "ordinal":
        # The ratings between two values, half of those at either end counted in: the distance of mean ranks.
        middles = np.cumsum(given, axis=-1) - given / 2.0
        return np.asarray((middles[..., :, None] - middles[..., None, :]) ** 2)
    raise ValueError(f"Alpha knows nominal, ordinal and interval ratings, not {level!r}.")
