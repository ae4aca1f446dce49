"""Resampled sums of per-item statistics, from which any metric of sums has its value in every bootstrap round."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Draws are made in chunks of about this many numbers, so memory stays near 32 MB.
_CHUNK_NUMBERS = 4_000_000


def sum_draws(
    statistics: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """The column sums [rounds, columns] of a table [items, columns], resampling items or whole clusters.

    Every round draws as many clusters as there are, with replacement, each with all its items.

    >>> sum_draws([[1, 0], [1, 0]], rounds=2).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    table = np.asarray(statistics, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"Statistics are a table with a row an item, not of shape {table.shape}.")
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")
    if clusters is not None:
        table = _cluster_sums(table, clusters)
    # Clusters with equal statistics are interchangeable: how often each *kind* comes up is a multinomial draw.
    # Kinds come out sorted, so the order in which items were read does not matter.
    kinds, multiplicity = np.unique(table, axis=0, return_counts=True)
    chances = multiplicity / len(table)
    generator = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_NUMBERS // len(kinds))
    found = np.empty((rounds, table.shape[1]))
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        found[start:stop] = generator.multinomial(len(table), chances, size=stop - start) @ kinds
    return found


def confusion_draws(
    cells: ArrayLike,
    classes: int,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Resampled confusion tables [rounds, classes, classes] of items that fall into `cells` of the flat table."""
    drawn = sum_draws(one_hot(cells, classes * classes), clusters, rounds=rounds, seed=seed)
    return drawn.reshape(rounds, classes, classes)


def one_hot(places: ArrayLike, size: int) -> NDArray[np.float64]:
    """A row for each place, with a one in that column.

    >>> one_hot([1, 0], 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.asarray(np.eye(size)[np.asarray(places, dtype=np.int64)], dtype=np.float64)


def _cluster_sums(table: NDArray[np.float64], clusters: Sequence[Hashable]) -> NDArray[np.float64]:
    if len(clusters) != len(table):
        raise ValueError(f"There are {len(table)} items but {len(clusters)} cluster names.")
    codes: dict[Hashable, int] = {}
    index = np.fromiter((codes.setdefault(name, len(codes)) for name in clusters), np.int64, len(table))
    sums = np.zeros((len(codes), table.shape[1]))
    np.add.at(sums, index, table)
    return sums
