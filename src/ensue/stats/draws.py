"""How often each item comes up in each round of a bootstrap that draws items or whole clusters of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def cluster_codes(clusters: Sequence[Hashable] | None, n: int) -> NDArray[np.int64]:
    """The number of each item's cluster, from 0 in order of appearance; every item its own without clusters."""
    if clusters is None:
        return np.arange(n, dtype=np.int64)
    if len(clusters) != n:
        raise ValueError(f"There are {n} items but {len(clusters)} cluster names.")
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(name, len(seen)) for name in clusters), np.int64, n)


def draw_counts(units: int, rounds: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """How often each unit comes up in each round [rounds, units], as many drawn as there are."""
    places = generator.integers(0, units, size=(rounds, units))
    places += np.arange(rounds)[:, None] * units
    return np.bincount(places.ravel(), minlength=rounds * units).reshape(rounds, units).astype(np.float64)
