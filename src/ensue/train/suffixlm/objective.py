"""The contrastive loss: the predicted vector of the next segment against every other segment of the batch."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.backends.suffixlm.model import SuffixLM
from ensue.train.suffixlm.corpus import Corpus
from ensue.train.suffixlm.windows import Batch


class Places(NamedTuple):
    """Where the segments of a batch stand: corpus rows (−1: none), their works, and which open a chapter."""

    rows: Tensor
    works: Tensor
    openings: Tensor


class Negatives(NamedTuple):
    """What a prediction is held against.

    `others`: segments of other works. `earlier`: segments of its own work before the true one. `spare`: how many
    segments right after the next one do not count, for they would follow nearly as well.
    """

    others: bool = True
    earlier: bool = True
    spare: int = 0


def contrastive_loss(
    predicted: Tensor,
    vectors: Tensor,
    places: Places,
    negatives: Negatives = Negatives(),
    *,
    ahead: Tensor | None = None,
    break_weight: float = 1.0,
) -> Tensor:
    """Mean cross-entropy of picking the true segment among itself and its negatives in the batch.

    `predicted` and `vectors` are windows × segments × width. The true segment is the next one, or the one
    so many segments `ahead` (windows × segments; cut to the window's end).
    """
    windows, length, width = vectors.shape
    rows, works = places.rows.reshape(-1), places.works.reshape(-1)
    after = (places.rows >= 0).sum(1, keepdim=True) - 1 - torch.arange(length, device=rows.device)[None]
    ahead = after.clamp(max=1) if ahead is None else torch.minimum(ahead, after)
    wanted = (ahead >= 1).reshape(-1)
    targets = (torch.arange(windows * length, device=rows.device).view(windows, length) + ahead).reshape(-1)[
        wanted
    ]
    following, owners = rows[wanted, None] + 1, works[wanted, None]
    own = works == owners
    out = (rows < 0) | (own & (rows > following) & (rows <= following + negatives.spare))
    if not negatives.earlier:
        out = out | (own & (rows < following))
    if not negatives.others:
        out = out | ~own
    # A true segment further ahead may lie among those spared; the next one is a negative of none but itself.
    out = out | (own & (rows == following) & (negatives.spare > 0))
    out = out.scatter(1, targets[:, None], False)
    scores = predicted.reshape(-1, width)[wanted].float() @ vectors.reshape(-1, width).float().T
    losses = nn.functional.cross_entropy(scores.masked_fill(out, float("-inf")), targets, reduction="none")
    weights = torch.where(places.openings.reshape(-1)[targets], break_weight, 1.0)
    return (losses * weights).sum() / weights.sum()


class Objective(nn.Module):  # type: ignore[misc]
    """The loss of a batch of windows, from tokens where the encoder learns, from stored vectors where not."""

    def __init__(
        self,
        network: SuffixLM,
        corpora: dict[str, Corpus],
        encoded: dict[str, np.memmap[Any, Any]] | None,
        *,
        negatives: Negatives,
        horizon: int = 1,
        segment_dropout: float = 0.0,
        token_dropout: float = 0.0,
        break_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.network, self.negatives, self.horizon = network, negatives, horizon
        self.segment_dropout, self.token_dropout = segment_dropout, token_dropout
        self.break_weight = break_weight
        self._corpora, self._encoded = corpora, encoded

    def forward(self, named: tuple[str, Batch]) -> Tensor:
        corpus, batch = named
        device = self.network.positions.weight.device
        places = Places(*(torch.from_numpy(table).to(device) for table in batch))
        found = self.segment_vectors(corpus, batch.rows[batch.rows >= 0])
        vectors = found.new_zeros((*batch.rows.shape, found.shape[-1]))
        vectors[places.rows >= 0] = found
        if not self.training:
            return contrastive_loss(self.network(vectors), vectors, places, self.negatives)
        shape = batch.rows.shape
        seen = torch.rand(shape, device=device) >= self.segment_dropout if self.segment_dropout else None
        ahead = torch.randint(1, self.horizon + 1, shape, device=device)
        predicted = self.network(vectors, seen)
        return contrastive_loss(
            predicted, vectors, places, self.negatives, ahead=ahead, break_weight=self.break_weight
        )

    def segment_vectors(self, corpus: str, rows: np.ndarray[Any, Any]) -> Tensor:
        """The vectors of some rows of a corpus."""
        device = self.network.positions.weight.device
        if self._encoded is not None:
            stored = torch.from_numpy(np.asarray(self._encoded[corpus][rows])).to(device)
            return self.network.vectors(stored)
        ids, mask = tokens_of(self._corpora[corpus], rows, device)
        if self.training and self.token_dropout:
            kept = torch.rand(mask.shape, device=device) >= self.token_dropout
            kept[:, 0] = True
            mask = mask * kept
        return self.network.vectors(self.network.encode(ids, mask))


def tokens_of(corpus: Corpus, rows: np.ndarray[Any, Any], device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids and mask of some rows."""
    ids = torch.from_numpy(np.asarray(corpus.rows[rows], dtype=np.int64))
    ids = ids.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else ids
    return ids, (ids != corpus.pad).long()
