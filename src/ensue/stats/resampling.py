"""Draws of a bootstrap over clusters: of sums, from which any metric of sums has its value in every round.

That of sums is Rubin's (1981): each round weighs the clusters by random numbers instead of counting how often each
is drawn. What the sample does not hold would have no weight in any round, so that a perfect score would vary in none;
`MadeUp` clusters, about one in all, stand for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]
# Draws are made in chunks of about this many numbers, so memory stays near 32 MB.
_CHUNK_NUMBERS = 4_000_000


class MadeUp(NamedTuple):
    """Statistics of clusters that were not seen [kinds, columns], and how many of each kind there are [kinds]."""

    statistics: Numbers
    weights: Numbers


def sum_draws(
    statistics: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    made_up: MadeUp | None = None,
    rounds: int = 2_000,
    seed: int = 0,
) -> Numbers:
    """Draw the column sums [rounds, columns] of a table [items, columns], resampling items or whole clusters.

    Each round's weights, those of made-up clusters counted in, add up to the number of clusters.

    >>> sum_draws([[1, 0], [1, 0]], rounds=2).round(12).tolist()
    [[2.0, 0.0], [2.0, 0.0]]
    """
    table = np.asarray(statistics, dtype=np.float64)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(f"Statistics are a table with a row an item, not of shape {table.shape}.")
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")
    if clusters is not None:
        table = table_of_clusters(table, clusters)
    # Clusters with equal statistics are interchangeable: their weights together are one gamma draw.
    # Kinds come out sorted, so the order in which items were read does not matter.
    kinds, shapes = np.unique(table, axis=0, return_counts=True)
    if made_up is not None:
        there = made_up.weights > 0.0
        kinds = np.vstack([kinds, made_up.statistics[there]])
        shapes = np.concatenate([shapes, made_up.weights[there]])
    generator = np.random.default_rng(seed)
    chunk = max(1, _CHUNK_NUMBERS // len(kinds))
    found = np.empty((rounds, table.shape[1]))
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        weights = generator.standard_gamma(shapes, size=(stop - start, len(kinds)))
        found[start:stop] = weights / weights.sum(axis=1, keepdims=True) * len(table) @ kinds
    return found


def confusion_draws(
    cells: ArrayLike,
    classes: int,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> Numbers:
    """Draw confusion tables [rounds, classes, classes] of items that fall into `cells` of the flat table."""
    table = one_hot(cells, classes * classes)
    units = len(table) if clusters is None else len(set(clusters))
    guess = MadeUp(np.eye(classes * classes) * (len(table) / units), random_answer(table, classes))
    drawn = sum_draws(table, clusters, made_up=guess, rounds=rounds, seed=seed)
    return drawn.reshape(rounds, classes, classes)


def random_answer(table: Numbers, classes: int) -> Numbers:
    """Return how one item answered at random falls into the cells: gold as often as seen, any class given alike.

    >>> random_answer(one_hot([0, 0, 3, 0], 4), 2).tolist()
    [0.375, 0.375, 0.125, 0.125]
    """
    gold = table.sum(axis=0).reshape(classes, classes).sum(axis=1)
    return np.repeat(gold / gold.sum() / classes, classes)


def one_hot(places: ArrayLike, size: int) -> Numbers:
    """Return a row for each place, with a one in that column.

    >>> one_hot([1, 0], 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return np.asarray(np.eye(size)[np.asarray(places, dtype=np.int64)], dtype=np.float64)


def table_of_clusters(table: Numbers, clusters: Sequence[Hashable]) -> Numbers:
    """Sum the columns of each cluster [clusters, columns], in order of appearance."""
    index = cluster_codes(clusters, len(table))
    sums = np.zeros((int(index.max()) + 1, table.shape[1]))
    np.add.at(sums, index, table)
    return sums


def cluster_codes(clusters: Sequence[Hashable] | None, n: int) -> NDArray[np.int64]:
    """Number each item's cluster, from 0 in order of appearance; every item is its own without clusters."""
    if clusters is None:
        return np.arange(n, dtype=np.int64)
    if len(clusters) != n:
        raise ValueError(f"There are {n} items but {len(clusters)} cluster names.")
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(name, len(seen)) for name in clusters), np.int64, n)


def draw_counts(units: int, rounds: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Count how often each unit comes up in each round [rounds, units], as many drawn as there are."""
    places = generator.integers(0, units, size=(rounds, units))
    places += np.arange(rounds)[:, None] * units
    return np.bincount(places.ravel(), minlength=rounds * units).reshape(rounds, units).astype(np.float64)
