"""The contrastive loss: the predicted vector of the next segment against every other segment of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ensue.models.suffixlm_network import SuffixLM
from ensue.train.suffixlm.corpus import Corpus
from ensue.train.suffixlm.windows import Batch


def contrastive_loss(
    predicted: Tensor, vectors: Tensor, valid: Tensor, openings: Tensor, break_weight: float
) -> Tensor:
    """Mean cross-entropy of picking the true next segment among all valid segments of the batch.

    `predicted` and `vectors` are windows × segments × width, `valid` says which segments exist. The negatives
    of a prediction are all other segments: those of its own work and those of the other works.
    """
    windows, length, width = vectors.shape
    scores = predicted[:, :-1].reshape(-1, width).float() @ vectors.reshape(-1, width).float().T
    scores = scores.masked_fill(~valid.reshape(1, -1), float("-inf"))
    place = torch.arange(windows * length, device=vectors.device).view(windows, length)
    targets = place[:, 1:].reshape(-1)
    wanted = valid[:, 1:].reshape(-1)
    losses = nn.functional.cross_entropy(scores[wanted], targets[wanted], reduction="none")
    weights = torch.where(openings[:, 1:].reshape(-1)[wanted], break_weight, 1.0)
    return (losses * weights).sum() / weights.sum()


class Objective(nn.Module):
    """The loss of a batch of windows, from tokens where the encoder learns, from stored vectors where not."""

    def __init__(
        self,
        network: SuffixLM,
        corpora: dict[str, Corpus],
        encoded: dict[str, np.memmap[Any, Any]] | None,
        *,
        segment_dropout: float,
        break_weight: float,
    ) -> None:
        super().__init__()
        self.network = network
        self.segment_dropout, self.break_weight = segment_dropout, break_weight
        self._corpora, self._encoded = corpora, encoded

    def forward(self, named: tuple[str, Batch]) -> Tensor:
        corpus, batch = named
        rows = torch.from_numpy(batch.rows)
        device = self.network.positions.weight.device
        valid = (rows >= 0).to(device)
        flat = batch.rows[batch.rows >= 0]
        found = self.segment_vectors(corpus, flat)
        vectors = found.new_zeros((*rows.shape, found.shape[-1]))
        vectors[valid] = found
        seen = None
        if self.training and self.segment_dropout:
            seen = torch.rand(rows.shape, device=device) >= self.segment_dropout
        predicted = self.network(vectors, seen)
        openings = torch.from_numpy(batch.openings).to(device)
        weight = self.break_weight if self.training else 1.0
        return contrastive_loss(predicted, vectors, valid, openings, weight)

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
