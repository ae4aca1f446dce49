"""BERTScore: every token is matched with the nearest of the other text, by the cosine of their vectors.

As in the `bert_score` package: words may be matched with the other text's special tokens, which weigh nothing
themselves; the layer is the one that was tuned for the model, where it is among those (the last where it is not);
space around a text is taken off; a text without words has 0. Scores are not rescaled with a baseline. Each distinct
text is encoded once; a candidate is compared with all of its references in one product of matrices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.metrics.overlap import NOTHING, Overlap, harmonic
from ensue.models.protocols import TokenEncoder

Vectors = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float64]


class WeighedTokens(NamedTuple):
    """The unit vectors of a text's tokens and how much each token weighs: special ones nothing."""

    vectors: Vectors
    weights: Weights


# Of models that are often used, the layer whose scores agree best with people's on WMT16 (`bert_score` 0.3.13).
TUNED_LAYERS: Mapping[str, int] = {
    "albert-base-v2": 9,
    "albert-large-v2": 14,
    "albert-xlarge-v2": 13,
    "albert-xxlarge-v2": 8,
    "bert-base-cased-finetuned-mrpc": 9,
    "bert-base-multilingual-cased": 9,
    "bert-base-uncased": 9,
    "bert-large-uncased": 18,
    "deberta-base": 9,
    "deberta-base-mnli": 9,
    "deberta-large": 16,
    "deberta-large-mnli": 18,
    "deberta-v3-base": 9,
    "deberta-v3-large": 12,
    "deberta-v3-small": 4,
    "deberta-xlarge": 18,
    "deberta-xlarge-mnli": 40,
    "distilbert-base-uncased": 5,
    "distilroberta-base": 5,
    "electra-base-discriminator": 9,
    "electra-large-discriminator": 14,
    "electra-small-discriminator": 11,
    "longformer-base-4096": 7,
    "longformer-large-4096": 14,
    "mpnet-base": 8,
    "roberta-base": 10,
    "roberta-large": 17,
    "roberta-large-mnli": 19,
    "scibert_scivocab_uncased": 8,
    "spanbert-base-cased": 8,
    "spanbert-large-cased": 17,
    "xlm-roberta-base": 9,
    "xlm-roberta-large": 17,
    "xlnet-base-cased": 5,
    "xlnet-large-cased": 7,
}


def layer_for(model: str, layer: int | None = None) -> int | None:
    """Return the layer asked for, or the one tuned for a model of that name; None, the last, where there is none."""
    if layer is not None:
        return layer
    # Who published a copy makes no difference: `FacebookAI/roberta-large` is `roberta-large`.
    return TUNED_LAYERS.get(model.rpartition("/")[2].lower())


def bertscore_of(
    encoder: TokenEncoder,
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    layer: int | None = None,
) -> list[list[Overlap]]:
    """Return BERTScore of each candidate with each of its references, all words weighing the same."""
    texts = list(dict.fromkeys([*candidates, *(reference for own in references for reference in own)]))
    known: dict[str, WeighedTokens] = {}
    vectors = encoder.encode_tokens(texts, layer_for(encoder.card.name, layer))
    for text, found, tokens in zip(texts, vectors, encoder.text_tokens(texts), strict=True):
        # A text of special tokens only has no words that could be matched.
        kept = len(found) if not all(tokens.special) else 0
        weights = np.asarray([0.0 if special else 1.0 for special in tokens.special], dtype=np.float64)
        known[text] = WeighedTokens(unit(found[:kept]), weights[:kept])
    return [
        match(known[candidate], [known[reference] for reference in own])
        for candidate, own in zip(candidates, references, strict=True)
    ]


def match(candidate: WeighedTokens, references: Sequence[WeighedTokens]) -> list[Overlap]:
    """Score one candidate with each reference; 0 where either has no token, or none that weighs anything."""
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
    """Scale vectors to length one; one without length stays as it is."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0), dtype=np.float32)


def _weighed(values: Weights, weights: Weights) -> float:
    """Return the weighted mean, rounding past the largest cosine taken off; 0 where nothing weighs."""
    total = float(weights.sum())
    return float(np.clip(values @ weights / total, -1.0, 1.0)) if total > 0.0 else 0.0
