"""BERTScore: every token is matched with the nearest of the other text, by the cosine of their vectors.

Each distinct text is encoded once; a candidate is compared with all of its references in one product of matrices.
Special tokens take no part at all (the `bert_score` package lets words match them, though it gives them no weight),
and scores are not rescaled with a baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.metrics.overlap import NOTHING, Overlap, harmonic
from ensue.models.protocols import TokenEncoder

Vectors = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float64]


class Tokens(NamedTuple):
    """The unit vectors of a text's tokens and how much each token weighs."""

    vectors: Vectors
    weights: Weights


def bertscore_of(
    encoder: TokenEncoder,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    layer: int | None = None,
) -> list[list[Overlap]]:
    """BERTScore of each candidate with each of its references, all tokens weighing the same."""
    texts = _distinct(candidates, references)
    vectors = encoder.encode_tokens(texts, layer)
    known = {text: Tokens(unit(one), np.ones(len(one))) for text, one in zip(texts, vectors, strict=True)}
    return _scores(known, candidates, references)


def weighted_bertscore_of(
    encoder: TokenEncoder,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    layer: int | None = None,
) -> list[list[Overlap]]:
    """As `bertscore_of`, each token weighing by how rare it is in the references (idf)."""
    texts = _distinct(candidates, references)
    ids = dict(zip(texts, encoder.token_ids(texts), strict=True))
    # A reference of several candidates counts each time, as in the `bert_score` package.
    rare = inverse_frequencies(ids[reference] for own in references for reference in own)
    vectors = encoder.encode_tokens(texts, layer)
    known = {
        text: Tokens(unit(one), weights_of(ids[text], rare)) for text, one in zip(texts, vectors, strict=True)
    }
    return _scores(known, candidates, references)


def inverse_frequencies(documents: Iterable[Sequence[int]]) -> Mapping[int | None, float]:
    """Of each token log((documents + 1) / (documents that have it + 1)); under None that of a token in none."""
    held = Counter[int]()
    count = 0
    for document in documents:
        held.update(set(document))
        count += 1
    found: dict[int | None, float] = {token: log((count + 1) / (times + 1)) for token, times in held.items()}
    return found | {None: log(count + 1)}


def weights_of(ids: Sequence[int], rare: Mapping[int | None, float]) -> Weights:
    """The weight of each token of a text."""
    return np.asarray([rare.get(token, rare[None]) for token in ids], dtype=np.float64)


def match(candidate: Tokens, references: Sequence[Tokens]) -> list[Overlap]:
    """BERTScore of one candidate with each reference; 0 where either has no token, or none that weighs anything."""
    out = [NOTHING] * len(references)
    present = [i for i, one in enumerate(references) if len(one.vectors)]
    if not len(candidate.vectors) or not present:
        return out
    together = np.concatenate([references[i].vectors for i in present])
    starts = np.cumsum([0, *(len(references[i].vectors) for i in present)])
    cosines = candidate.vectors @ together.T
    nearest = np.maximum.reduceat(cosines, starts[:-1], axis=1).astype(np.float64)
    found = cosines.max(axis=0).astype(np.float64)
    for column, i in enumerate(present):
        precision = _weighed(nearest[:, column], candidate.weights)
        recall = _weighed(found[starts[column] : starts[column + 1]], references[i].weights)
        # Cosines may be below zero, where a harmonic mean says nothing.
        f1 = harmonic(precision, recall) if min(precision, recall) > 0.0 else 0.0
        out[i] = Overlap(precision, recall, f1)
    return out


def unit(vectors: Vectors) -> Vectors:
    """Vectors of length one; one without length stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0), dtype=np.float32)


def _weighed(values: Weights, weights: Weights) -> float:
    """The weighted mean, rounding past the largest cosine taken off; 0 where nothing weighs."""
    total = float(weights.sum())
    return float(np.clip(values @ weights / total, -1.0, 1.0)) if total > 0.0 else 0.0


def _distinct(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> list[str]:
    return list(dict.fromkeys([*candidates, *(reference for own in references for reference in own)]))


def _scores(
    known: Mapping[str, Tokens], candidates: Sequence[str], references: Sequence[Sequence[str]]
) -> list[list[Overlap]]:
    return [
        match(known[candidate], [known[reference] for reference in own])
        for candidate, own in zip(candidates, references, strict=True)
    ]
