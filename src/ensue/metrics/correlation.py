"""Pearson's and Spearman's correlation of two lists of numbers, ties sharing their mean rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# What is left of the spread after the mean was taken off is rounding, not signal, below this share of the size.
_ROUNDING = 1e-13


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """The linear correlation; nan where one of the lists is constant, since it then has none.

    >>> pearson([1, 2, 3], [2, 4, 7])
    0.9933992677987828
    """
    a, b = _pair(x, y)
    return _cosine(_centred(a), _centred(b))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """The correlation of the ranks; nan where one of the lists is constant.

    >>> round(spearman([1, 2, 3], [2, 4, 700]), 12)
    1.0
    """
    a, b = _pair(x, y)
    return _cosine(_centred(ranks(a)), _centred(ranks(b)))


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Each value's rank from 1; equal values share the mean of the ranks they take up.

    >>> ranks([30, 10, 30, 20]).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, kind, sizes = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)
    middles = ends - (sizes - 1) / 2.0
    return np.asarray(middles[kind.reshape(-1)], dtype=np.float64)


def _pair(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"A correlation needs two flat lists of equal length, not {a.shape} and {b.shape}.")
    if len(a) < 2:
        raise ValueError(f"A correlation needs at least two pairs, not {len(a)}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("A correlation needs finite numbers: leave out or score what is missing first.")
    return a, b


def _centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Deviations from the mean over their length; all zero for a constant list, whatever rounding leaves."""
    deviations = values - values.mean()
    length = float(np.linalg.norm(deviations))
    if length <= _ROUNDING * float(np.linalg.norm(values)):
        return np.zeros_like(values)
    return np.asarray(deviations / length, dtype=np.float64)


def _cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    if not a.any() or not b.any():
        return float("nan")
    return float(np.clip(a @ b, -1.0, 1.0))
