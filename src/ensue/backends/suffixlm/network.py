"""The SuffixLM's network: a segment encoder and a causal Transformer over segment vectors."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

Attention = Literal["softmax", "average"]
Pooling = Literal["cls", "mean"]
Similarity = Literal["dot", "cosine"]

# How strongly an untrained network believes that the next segment is like those before it.
_FIRST_SCALE = {"dot": 0.1, "cosine": 10.0}


@dataclass(frozen=True)
class Shape:
    """The sizes of the Transformer over segments, and how a segment's vector is read off the encoder."""

    dimension: int = 768
    inner: int = 2048
    heads: int = 8
    layers: int = 6
    dropout: float = 0.1
    attention: Attention = "softmax"
    pooling: Pooling = "cls"
    similarity: Similarity = "dot"
    segment_tokens: int = 128
    max_segments: int = 80

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Block(nn.Module):  # type: ignore[misc]
    """One layer: attention over this and earlier segments, then a feed-forward net, both normalised first."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        width = shape.dimension
        self.heads, self.average, self.rate = shape.heads, shape.attention == "average", shape.dropout
        self.before_attention = nn.LayerNorm(width)
        self.before_inner = nn.LayerNorm(width)
        self.attend = nn.Linear(width, width if self.average else 3 * width)
        self.out = nn.Linear(width, width)
        self.inner = nn.Sequential(
            nn.Linear(width, shape.inner), nn.GELU(), nn.Dropout(shape.dropout), nn.Linear(shape.inner, width)
        )
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, states: Tensor, visible: Tensor) -> Tensor:
        """`visible` says which segments (keys) each segment (query) sees: rows × queries × keys."""
        states = states + self.dropout(self.out(self._attention(self.before_attention(states), visible)))
        return states + self.dropout(self.inner(self.before_inner(states)))

    def _attention(self, states: Tensor, visible: Tensor) -> Tensor:
        if self.average:
            weights = visible.to(states.dtype)
            return torch.bmm(weights / weights.sum(-1, keepdim=True), self.attend(states))
        rows, length, width = states.shape
        query, key, value = (
            x.view(rows, length, self.heads, -1).transpose(1, 2) for x in self.attend(states).chunk(3, -1)
        )
        rate = self.rate if self.training else 0.0
        found = nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=visible[:, None], dropout_p=rate
        )
        return found.transpose(1, 2).reshape(rows, length, width)


class SuffixLM(nn.Module):  # type: ignore[misc]
    """Predicts the vector of the next segment from the vectors of the segments before it."""

    def __init__(self, encoder: nn.Module, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.encoder = encoder
        encoded = int(encoder.config.hidden_size)
        same = encoded == shape.dimension
        self.project: nn.Module = nn.Identity() if same else nn.Linear(encoded, shape.dimension)
        self.positions = nn.Embedding(shape.max_segments, shape.dimension)
        self.dropout = nn.Dropout(shape.dropout)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.last = nn.LayerNorm(shape.dimension)
        self.predict = nn.Linear(shape.dimension, shape.dimension)
        self.scale = nn.Parameter(torch.zeros(()))
        self._start()

    def _start(self) -> None:
        """Small weights, and a first prediction that is like the last segment and the mean of all before it.

        The projection keeps angles, values pass through attention (uniform at first) as they are, and the
        prediction starts as the identity. Training then begins with "what comes next is like what came
        before" and not with noise: on few books that saves most of the steps.
        """
        width = self.shape.dimension
        for module in [self.positions, *self.blocks.modules()]:
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
        if isinstance(self.project, nn.Linear):
            nn.init.orthogonal_(self.project.weight)
            nn.init.zeros_(self.project.bias)
        with torch.no_grad():
            for block in self.blocks:
                block.attend.weight[-width:] = torch.eye(width)
                block.out.weight.copy_(torch.eye(width) / len(self.blocks))
            self.predict.weight.copy_(torch.eye(width))
            self.predict.bias.zero_()
            self.scale.fill_(math.log(_FIRST_SCALE[self.shape.similarity]))

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What the encoder makes of each segment: its first token's state, or the mean over its tokens."""
        states = self.encoder(input_ids=ids, attention_mask=mask)[0]
        if self.shape.pooling == "cls":
            return states[:, 0]
        weights = mask[:, :, None].to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1).clamp(min=1)

    def vectors(self, encoded: Tensor) -> Tensor:
        """Segment vectors in the Transformer's dimension: what it reads, and what it predicts."""
        found: Tensor = self.project(encoded)
        return nn.functional.normalize(found, dim=-1) if self.shape.similarity == "cosine" else found

    def forward(self, vectors: Tensor, seen: Tensor | None = None) -> Tensor:
        """For each of rows × segments vectors the prediction of the vector after it.

        A segment's score is the dot product of its vector with the prediction. With cosine similarity vectors
        have length one, and predictions a learned length. `seen` (rows × segments) hides segments from those
        after them; a segment always sees itself.
        """
        rows, length, _ = vectors.shape
        order = torch.arange(length, device=vectors.device)
        visible = (order[None, :] <= order[:, None])[None].expand(rows, -1, -1)
        if seen is not None:
            itself = torch.eye(length, dtype=torch.bool, device=vectors.device)[None]
            visible = visible & (seen[:, None, :] | itself)
        length_one = nn.functional.normalize(vectors, dim=-1)
        states = self.dropout(length_one * math.sqrt(self.shape.dimension) + self.positions(order))
        for block in self.blocks:
            states = block(states, visible)
        predicted: Tensor = self.predict(self.last(states))
        if self.shape.similarity == "cosine":
            predicted = nn.functional.normalize(predicted, dim=-1)
        return predicted * self.scale.exp()


def bare_encoder(encoder: Any) -> None:
    """Take away the pooling head of a BERT-style encoder, which is not used here."""
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None


def truncate_encoder(encoder: Any, layers: int) -> None:
    """Keep only the embeddings and the first layers of a BERT-style encoder, as the authors' code does."""
    kept = encoder.encoder.layer[:layers]
    encoder.encoder.layer = kept
    encoder.config.num_hidden_layers = len(kept)
