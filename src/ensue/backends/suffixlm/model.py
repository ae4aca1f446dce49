"""The SuffixLM: predicts the vector of the next segment, and ranks suffixes by how well theirs fits it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ensue.backends.hf.batching import pad
from ensue.backends.hf.loading import WEIGHTS, ModelFolder, save_folder, state_of
from ensue.backends.suffixlm.segments import first_segment, frame_of, pack_to_end, sentence_tokens
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.scoring.finite import check_rows

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


class SegmentBlock(nn.Module):  # type: ignore[misc]
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
        """Run the layer; `visible` says which segments (keys) each (query) sees: rows × queries × keys."""
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
        self.blocks = nn.ModuleList(SegmentBlock(shape) for _ in range(shape.layers))
        self.last = nn.LayerNorm(shape.dimension)
        self.predict = nn.Linear(shape.dimension, shape.dimension)
        self.scale = nn.Parameter(torch.zeros(()))
        self._start()

    def _start(self) -> None:
        """Start with small weights, and a prediction like the last segment and the mean of all before it.

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
        """Return what the encoder makes of each segment: its first token's state, or the mean over its tokens."""
        states = self.encoder(input_ids=ids, attention_mask=mask)[0]
        if self.shape.pooling == "cls":
            return states[:, 0]
        weights = mask[:, :, None].to(states.dtype)
        return (states * weights).sum(1) / weights.sum(1).clamp(min=1)

    def vectors(self, encoded: Tensor) -> Tensor:
        """Return segment vectors in the Transformer's dimension: what it reads, and what it predicts."""
        found: Tensor = self.project(encoded)
        return nn.functional.normalize(found, dim=-1) if self.shape.similarity == "cosine" else found

    def forward(self, vectors: Tensor, seen: Tensor | None = None) -> Tensor:
        """Predict for each of rows × segments vectors the one after it.

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


ARCHITECTURE = "SuffixLM"
_BATCH_SEGMENTS = {"cuda": 2048}


class SuffixModel:
    """A SuffixLM with its tokenizer."""

    def __init__(self, network: SuffixLM, tokenizer: Any, card: ModelCard) -> None:
        self.network, self.tokenizer, self.card = network, tokenizer, card
        self.device = network.scale.device
        self._frame = frame_of(tokenizer, network.shape.segment_tokens)

    @property
    def max_prefix_tokens(self) -> int:
        shape = self.network.shape
        return int(shape.max_segments * shape.segment_tokens)

    def score_suffixes(
        self, context: str, suffixes: Sequence[str], *, prefix_tokens: Sequence[int], suffix_tokens: int
    ) -> list[list[float]]:
        """Dot products of each suffix's vector with the predicted one, for each prefix length.

        A prefix of n tokens is the last n / 128 segments (at least one), so every segment is encoded once
        whatever the number of lengths. A suffix is its first segment: the sentences that fit whole, as in training.
        """
        shape = self.network.shape
        counts = [max(tokens // shape.segment_tokens, 1) for tokens in prefix_tokens]
        size = self._frame.room
        most = min(max(counts), shape.max_segments)
        before = pack_to_end(sentence_tokens(self.tokenizer, context), size, most)
        if not before:
            raise EnsueError(f"A context has no word {self.card.name} can read: {context[:40]!r}.")
        shorter = min(size, suffix_tokens)
        after = [first_segment(sentence_tokens(self.tokenizer, suffix), shorter) for suffix in suffixes]
        with torch.inference_mode():
            vectors = self.network.vectors(self._encode([*before, *after]))
            choices = vectors[len(before) :].float()
            out = []
            for count in counts:
                prefix = vectors[: len(before)][-count:]
                predicted = self.network(prefix[None])[0, -1].float()
                scores = (choices @ predicted).tolist()
                check_rows(scores, suffixes, self.card)
                out.append(scores)
        return out

    def _encode(self, segments: Sequence[Sequence[int]]) -> Any:
        step = _BATCH_SEGMENTS.get(self.device.type, 64)
        pieces = []
        for begin in range(0, len(segments), step):
            rows = [self._frame.around(segment) for segment in segments[begin : begin + step]]
            ids, mask = pad(rows, int(self.tokenizer.pad_token_id or 0))
            pieces.append(self.network.encode(ids.to(self.device), mask.to(self.device)))
        return torch.cat(pieces)


def load_suffixlm(folder: ModelFolder) -> SuffixModel:
    """Load the SuffixLM saved in a folder."""
    import transformers

    folder.check()
    with folder.loading("a SuffixLM"):
        described = dict(folder.config["encoder"])
        encoder_config = transformers.AutoConfig.for_model(described.pop("model_type"), **described)
        encoder = transformers.AutoModel.from_config(encoder_config)
        bare_encoder(encoder)
        network = SuffixLM(encoder, Shape(**folder.config["shape"]))
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder.path, local_files_only=True)
        network.load_state_dict(load_file(folder.path / WEIGHTS))
    identity = folder.identity(folder.tokenizer_fingerprint(tokenizer))
    longest = network.shape.max_segments * network.shape.segment_tokens
    card = folder.card("suffixlm", identity, max_length=longest)
    return SuffixModel(folder.placed(network), tokenizer, card)


def save_suffixlm(folder: Path, network: Any, tokenizer: Any) -> None:
    """Save a SuffixLM as a model folder: one file of weights, a configuration, the tokenizer."""
    config = {
        "architectures": [ARCHITECTURE],
        "shape": asdict(network.shape),
        "encoder": network.encoder.config.to_dict(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    save_folder(folder, config, state_of(network))
