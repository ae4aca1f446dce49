"""What is made of two sentence vectors: their cosine, and the features a classifier of pairs is given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.vectors import SentenceVectors
from ensue.benchmarks.senteval.rows import Rows

Vectors = NDArray[np.float32]


def cosine(first: Vectors, second: Vectors) -> NDArray[np.float64]:
    """The cosine of each row of one table with the same row of the other; 0 where a vector is all zeros.

    >>> cosine(np.float32([[3, 4], [1, 0]]), np.float32([[6, 8], [0, 0]])).tolist()
    [1.0, 0.0]
    """
    a, b = first.astype(np.float64), second.astype(np.float64)
    product = np.einsum("ij,ij->i", a, b)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0.0))


def pair_features(first: Vectors, second: Vectors) -> Vectors:
    """SentEval's features of a pair: the absolute difference and the product, element by element.

    >>> pair_features(np.float32([[1, 2]]), np.float32([[3, 1]])).tolist()
    [[2.0, 1.0, 3.0, 2.0]]
    """
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def similarities(rows: Rows, vectors: SentenceVectors, layer: int | None) -> NDArray[np.float64]:
    """The cosine of each pair."""
    return cosine(*_columns(rows, vectors, layer))


def features(rows: Rows, vectors: SentenceVectors, layer: int | None) -> Vectors:
    """What a classifier is given of each row: the sentence's vector, or the features of a pair."""
    columns = _columns(rows, vectors, layer)
    return columns[0] if len(columns) == 1 else pair_features(*columns)


def _columns(rows: Rows, vectors: SentenceVectors, layer: int | None) -> list[Vectors]:
    return [vectors.take(vectors.rows(column), layer) for column in rows.texts]
