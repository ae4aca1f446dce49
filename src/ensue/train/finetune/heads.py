"""An encoder with the head of a task's form on top: pooled sequence, texts apart, marked words, or spans."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ensue.benchmarks.nlu.examples import Form
from ensue.train.finetune.packed import Batch, Packs, Padded

Pool = Literal["cls", "mean", "last"]
# Weights of a head start small, as BERT's do, so that the encoder is not shaken by the first steps.
_STD = 0.02
# With two texts apart, a score starts from their cosine, which sentence encoders were trained for.
_COSINE = 1.0


class TaskNetwork(nn.Module):  # type: ignore[misc]
    """One fine-tuned classifier: a number per class and sequence, or one number per sequence."""

    def __init__(
        self, trunk: Any, form: Form, outputs: int, *, pool: Pool, joint: bool, apart: bool, dropout: float
    ) -> None:
        super().__init__()
        self.trunk, self.form, self.pool = trunk, form, pool
        width = int(trunk.config.hidden_size)
        self.joint, self.apart = joint, apart
        parts = {"word": 3, "coreference": 2}.get(form, 1) * joint + 4 * apart
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(parts * width, outputs)
        # A score that starts from the cosine starts from nothing else: it is a good one already.
        nn.init.normal_(self.classifier.weight, std=0.0 if apart and form == "score" else _STD)
        nn.init.zeros_(self.classifier.bias)
        if apart:
            self.cosine = nn.Parameter(torch.full((outputs,), _COSINE if form == "score" else 0.0))
        if form == "coreference":
            # What each token of a span weighs is learned; equal weights to begin with.
            self.attention = nn.Linear(width, 1)
            nn.init.zeros_(self.attention.weight)
        accepted = inspect.signature(trunk.forward).parameters
        self._types = "token_type_ids" in accepted and int(getattr(trunk.config, "type_vocab_size", 0)) > 1
        self._more = {"use_cache": False} if "use_cache" in accepted else {}

    def forward(self, packs: Packs, batch: Batch) -> Tensor:
        """Sequences × outputs (examples × outputs where no texts are joined)."""
        features: list[Tensor] = []
        cosine: Tensor | None = None
        if packs.joint is not None:
            features += self._joint(packs.joint.gather(batch.rows, batch.width))
        if packs.apart is not None:
            padded = packs.apart.gather(batch.apart, batch.apart_width)
            pooled = pooled_states(self._states(padded), padded.mask, self.pool).float()
            first, second = pooled[0::2], pooled[1::2]
            features += [first, second, (first - second).abs(), first * second]
            cosine = nn.functional.cosine_similarity(first, second)
        # Heads are narrow: they cost nothing in full precision and are steadier there.
        with torch.autocast(features[0].device.type, enabled=False):
            outputs: Tensor = self.classifier(self.dropout(torch.cat(features, 1).float()))
            return outputs if cosine is None else outputs + cosine[:, None] * self.cosine

    def _joint(self, padded: Padded) -> list[Tensor]:
        states = self._states(padded)
        if self.form == "coreference":
            weights = self.attention(states)[..., 0].float()
            return [attended(states.float(), weights, padded.spans[:, i]) for i in range(2)]
        features = [pooled_states(states, padded.mask, self.pool).float()]
        if self.form == "word":
            alike = states.new_zeros(states.shape[:2]).float()
            features += [attended(states.float(), alike, padded.spans[:, i]) for i in range(2)]
        return features

    def _states(self, padded: Padded) -> Tensor:
        types = {"token_type_ids": padded.types} if self._types else {}
        found: Tensor = self.trunk(
            input_ids=padded.ids, attention_mask=padded.mask.long(), **types, **self._more
        )[0]
        return found


def pooled_states(states: Tensor, mask: Tensor, pool: Pool) -> Tensor:
    """One vector per sequence: of the first token, the mean over its tokens, or of its last token."""
    if pool == "cls":
        return states[:, 0]
    if pool == "last":
        last = mask.sum(1) - 1
        return states[torch.arange(len(states), device=states.device), last]
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def attended(states: Tensor, weights: Tensor, spans: Tensor) -> Tensor:
    """One vector per span: the mean of its tokens' vectors, weighted by the softmax of their weights."""
    places = torch.arange(states.shape[1], device=states.device)
    outside = (places < spans[:, :1]) | (places >= spans[:, 1:])
    shares = weights.masked_fill(outside, -torch.inf).softmax(1)
    return torch.einsum("bt,bth->bh", shares, states)
