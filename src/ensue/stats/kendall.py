"""Bootstrap draws of Kendall's tau-b, resampling pairs or whole clusters.

scipy has tau of one sample at a time: 200 draws of 235 summaries take it 24 times as long (bench/agreement.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.draws import cluster_codes, draw_counts

Numbers = NDArray[np.float64]

# Resampled counts are drawn in chunks of about this many numbers, so memory stays near 100 MB.
_CHUNK_NUMBERS = 2_000_000


def kendall_draws(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    rounds: int = 2_000,
    seed: int = 0,
) -> Numbers:
    """Tau-b of as many pairs (or clusters of pairs) as there are, drawn with replacement each round.

    A pair that is drawn twice is tied with itself in both lists, as in a sample written out. A round that drew
    a constant is nan. Equal seeds and clusters draw the same samples, so that the draws of two metrics on the
    same summaries belong together round by round.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ValueError(f"A correlation needs two flat lists of equal length, not {a.shape} and {b.shape}.")
    if rounds < 1:
        raise ValueError(f"A bootstrap needs at least one round, not {rounds}.")
    codes = cluster_codes(clusters, len(a))
    units = int(codes.max()) + 1
    generator = np.random.default_rng(seed)
    agreement = np.sign(a[:, None] - a[None, :]) * np.sign(b[:, None] - b[None, :])
    kinds_a, kinds_b = _one_hot_kinds(a), _one_hot_kinds(b)
    found = np.empty(rounds)
    chunk = max(1, _CHUNK_NUMBERS // len(a))
    for start in range(0, rounds, chunk):
        stop = min(start + chunk, rounds)
        counts = draw_counts(units, stop - start, generator)[:, codes]
        agreeing = np.einsum("ij,ij->i", counts @ agreement, counts)
        everything = counts.sum(axis=1) ** 2
        apart = [everything - ((counts @ kinds) ** 2).sum(axis=1) for kinds in (kinds_a, kinds_b)]
        spread = np.sqrt(apart[0]) * np.sqrt(apart[1])
        found[start:stop] = np.clip(agreeing / np.where(spread > 0, spread, np.nan), -1.0, 1.0)
    return found


def _one_hot_kinds(values: Numbers) -> Numbers:
    """A column for each distinct value, with ones where it stands."""
    _, kind = np.unique(values, return_inverse=True)
    kind = kind.reshape(-1)
    table = np.zeros((len(values), int(kind.max()) + 1))
    table[np.arange(len(values)), kind] = 1.0
    return table
