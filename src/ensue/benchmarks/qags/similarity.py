"""How alike two answers are: shared words (F1), exact match, or the cosine of their vectors.

As in SQuAD 2.0 and in the authors' code, "no answer" is an answer like another: two of them agree, and one of them
agrees with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ensue.metrics.answers import exact_match, normalised, token_f1
from ensue.models.protocols import Encoder

Similarity = Callable[[str, str], float]
SIMILARITIES = ("f1", "exact", "embedding")


def f1(given: str, other: str) -> float:
    """Token F1; where normalising leaves nothing of one, 1 if it leaves nothing of the other either.

    >>> f1("the old mill", "mill"), f1("", ""), f1("", "mill")
    (0.6666666666666666, 1.0, 0.0)
    """
    if not normalised(given) or not normalised(other):
        return exact_match(given, other)
    return token_f1(given, other)


def by_vectors(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """The cosine of both answers' vectors, those below zero counted as 0; each distinct answer is encoded once.

    No answer has no vector; equal answers are 1 whatever the encoder.
    """
    texts = list(dict.fromkeys(text for pair in pairs if all(pair) for text in pair))
    known: Mapping[str, np.ndarray] = {}
    if texts:
        vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        known = dict(zip(texts, vectors / np.where(lengths > 0.0, lengths, 1.0), strict=True))
    return [_cosine(known, given, other) for given, other in pairs]


def similarities(name: str, pairs: Sequence[tuple[str, str]], encoder: Encoder | None = None) -> list[float]:
    """The similarity of each pair by name; `embedding` needs an encoder."""
    if name == "embedding":
        if encoder is None:
            raise ValueError("Embedding similarity needs an encoder.")
        return by_vectors(encoder, pairs)
    measure: Similarity = {"f1": f1, "exact": exact_match}[name]
    return [measure(given, other) for given, other in pairs]


def _cosine(known: Mapping[str, np.ndarray], given: str, other: str) -> float:
    if normalised(given) == normalised(other):
        return 1.0
    if not given or not other:
        return 0.0
    return float(np.clip(known[given] @ known[other], 0.0, 1.0))
