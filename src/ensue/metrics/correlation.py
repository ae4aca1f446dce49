"""Pearson's, Spearman's and Kendall's correlation: of two lists, or of many pairs of lists at once, a pair a row.

Kendall's of 100 articles of 16 systems takes scipy, which knows one pair at a time, about a hundred times as long
(bench/agreement.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ensue.stats.correlation import ranks

Numbers = NDArray[np.float64]
Kind = Literal["pearson", "spearman", "kendall"]
KINDS: tuple[Kind, ...] = ("pearson", "spearman", "kendall")

# What is left of the spread after the mean was taken off is rounding, not signal, below this share of the size.
_ROUNDING = 1e-13
# Comparisons of all with all are made for so many rows that they take up about this many numbers.
_CHUNK_NUMBERS = 4_000_000


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Return the linear correlation; nan where one of the lists is constant, since it then has none.

    >>> pearson([1, 2, 3], [2, 4, 7])
    0.9933992677987828
    """
    a, b = _checked(x, y, 1)
    return float(_pearson(a[None], b[None])[0])


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Return the correlation of the ranks; nan where one of the lists is constant.

    >>> round(spearman([1, 2, 3], [2, 4, 700]), 12)
    1.0
    """
    a, b = _checked(x, y, 1)
    return float(_pearson(ranks(a)[None], ranks(b)[None])[0])


def rowwise(kind: Kind, x: ArrayLike, y: ArrayLike) -> Numbers:
    """Correlate each row of x with that of y; nan where one of the two is constant.

    >>> rowwise("kendall", [[1, 2, 3], [1, 2, 3]], [[1, 3, 2], [5, 5, 5]]).round(6).tolist()
    [0.333333, nan]
    """
    a, b = _checked(x, y, 2)
    correlate = _CORRELATIONS[kind]
    chunk = max(1, _CHUNK_NUMBERS // a.shape[1] ** 2)
    pieces = [
        correlate(a[start : start + chunk], b[start : start + chunk]) for start in range(0, len(a), chunk)
    ]
    return np.concatenate(pieces) if pieces else np.empty(0)


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Return Kendall's tau-b of two lists, which takes ties into account; nan where one of them is constant.

    Every pair is compared, which takes memory for the square of the length: 80 MB for 10,000 pairs.

    >>> round(kendall([1, 2, 2, 3], [1, 2, 3, 3]), 6)
    0.8
    """
    return float(rowwise("kendall", np.asarray(x)[None], np.asarray(y)[None])[0])


def row_ranks(values: Numbers) -> Numbers:
    """Rank each value from 1 within its row; equal values share their mean rank.

    >>> row_ranks(np.array([[30.0, 10.0, 30.0, 20.0]])).tolist()
    [[3.5, 1.0, 3.5, 2.0]]
    """
    return np.asarray((values.shape[1] + 1 + _signs(values).sum(axis=2)) / 2.0)


def _pearson(a: Numbers, b: Numbers) -> Numbers:
    return np.asarray(np.clip((_centred_rows(a) * _centred_rows(b)).sum(axis=1), -1.0, 1.0))


def _spearman(a: Numbers, b: Numbers) -> Numbers:
    return _pearson(row_ranks(a), row_ranks(b))


def _kendall(a: Numbers, b: Numbers) -> Numbers:
    one, other = _signs(a), _signs(b)
    agreeing = np.einsum("ijk,ijk->i", one, other, dtype=np.float64)
    apart_a = np.count_nonzero(one, axis=(1, 2))
    apart_b = np.count_nonzero(other, axis=(1, 2))
    # Each root by itself, so that the product of two large counts stays exact where they are equal.
    spread = np.sqrt(apart_a) * np.sqrt(apart_b)
    return np.asarray(np.clip(agreeing / np.where(spread, spread, np.nan), -1.0, 1.0))


_CORRELATIONS: Mapping[Kind, Callable[[Numbers, Numbers], Numbers]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}


def _checked(x: ArrayLike, y: ArrayLike, dimensions: int) -> tuple[Numbers, Numbers]:
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.ndim != dimensions or a.shape != b.shape:
        what = "flat lists of equal length" if dimensions == 1 else "tables of one shape"
        raise ValueError(f"A correlation needs two {what}, not {a.shape} and {b.shape}.")
    if a.shape[-1] < 2:
        raise ValueError(f"A correlation needs at least two pairs, not {a.shape[-1]}.")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("A correlation needs finite numbers: leave out or score what is missing first.")
    return a, b


def _signs(values: Numbers) -> NDArray[np.int8]:
    """Compare each value with each other of its row: 1 where it is larger, -1 where it is smaller."""
    above = (values[:, :, None] > values[:, None, :]).view(np.int8)
    return above - above.transpose(0, 2, 1)


def _centred_rows(values: Numbers) -> Numbers:
    """Divide deviations from the row's mean by their length; nan for a constant row, whatever rounding leaves."""
    deviations = values - values.mean(axis=1, keepdims=True)
    length = np.linalg.norm(deviations, axis=1, keepdims=True)
    constant = length <= _ROUNDING * np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(deviations / np.where(constant, np.nan, length))
