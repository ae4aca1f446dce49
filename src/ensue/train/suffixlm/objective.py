"""The contrastive loss: the predicted vector of the next segment against every other segment of the batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.models.suffixlm_network import SuffixLM
from ensue.train.suffixlm.corpus import Corpus
from ensue.train.suffixlm.windows import Batch


class Negatives(NamedTuple):
    """Which segments of its own work a prediction is held against; those of other works always count.

    `earlier`: also segments before the true one. `spare`: how many segments right after the true one do not
    count, for they would follow nearly as well.
    """

    earlier: bool = True
    spare: int = 0


def contrastive_loss(
    predicted: Tensor, vectors: Tensor, places: Places, negatives: Negatives, break_weight: float = 1.0
) -> Tensor:
    """Mean cross-entropy of picking the true next segment among itself and its negatives in the batch.

    `predicted` and `vectors` are windows × segments × width.
    """
    width = vectors.shape[-1]
    scores = predicted[:, :-1].reshape(-1, width).float() @ vectors.reshape(-1, width).float().T
    rows, works = places.rows.reshape(-1), places.works.reshape(-1)
    true, owners = places.rows[:, 1:].reshape(-1, 1), places.works[:, 1:].reshape(-1, 1)
    own = works[None] == owners
    out = (rows < 0)[None] | (own & (rows > true) & (rows <= true + negatives.spare))
    if not negatives.earlier:
        out = out | (own & (rows < true))
    scores = scores.masked_fill(out, float("-inf"))
    targets = torch.arange(rows.numel(), device=rows.device).view(places.rows.shape)[:, 1:].reshape(-1)
    wanted = true[:, 0] >= 0
    losses = nn.functional.cross_entropy(scores[wanted], targets[wanted], reduction="none")
    weights = torch.where(places.openings[:, 1:].reshape(-1)[wanted], break_weight, 1.0)
    return (losses * weights).sum() / weights.sum()


class Places(NamedTuple):
    """Where the segments of a batch stand: corpus rows (−1: none), their works, and which open a chapter."""

    rows: Tensor
    works: Tensor
    openings: Tensor


class Objective(nn.Module):
    """The loss of a batch of windows, from tokens where the encoder learns, from stored vectors where not."""

    def __init__(
        self,
        network: SuffixLM,
        corpora: dict[str, Corpus],
        encoded: dict[str, np.memmap[Any, Any]] | None,
        *,
        negatives: Negatives,
        segment_dropout: float = 0.0,
        break_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.network, self.negatives = network, negatives
        self.segment_dropout, self.break_weight = segment_dropout, break_weight
        self._corpora, self._encoded = corpora, encoded

    def forward(self, named: tuple[str, Batch]) -> Tensor:
        corpus, batch = named
        device = self.network.positions.weight.device
        places = Places(*(torch.from_numpy(table).to(device) for table in batch))
        found = self.segment_vectors(corpus, batch.rows[batch.rows >= 0])
        vectors = found.new_zeros((*batch.rows.shape, found.shape[-1]))
        vectors[places.rows >= 0] = found
        seen = None
        if self.training and self.segment_dropout:
            seen = torch.rand(batch.rows.shape, device=device) >= self.segment_dropout
        weight = self.break_weight if self.training else 1.0
        return contrastive_loss(self.network(vectors, seen), vectors, places, self.negatives, weight)

    def segment_vectors(self, corpus: str, rows: np.ndarray[Any, Any]) -> Tensor:
        """The vectors of some rows of a corpus."""
        device = self.network.positions.weight.device
        if self._encoded is not None:
            stored = torch.from_numpy(np.asarray(self._encoded[corpus][rows])).to(device)
            return self.network.vectors(stored)
        ids, mask = tokens_of(self._corpora[corpus], rows, device)
        return self.network.vectors(self.network.encode(ids, mask))


def tokens_of(corpus: Corpus, rows: np.ndarray[Any, Any], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask of some rows."""
    ids = torch.from_numpy(np.asarray(corpus.rows[rows], dtype=np.int64))
    ids = ids.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else ids
    return ids, (ids != corpus.pad).long()
