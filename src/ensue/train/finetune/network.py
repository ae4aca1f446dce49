"""Sequences packed on the device in batches of like length, and the network with a task's head that reads them."""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from ensue.benchmarks.nlu.examples import Form
from ensue.train.batching import alike
from ensue.train.finetune.inputs import Sequences, TokenRow

Pool = Literal["cls", "mean", "last"]
# Weights of a head start small, as BERT's do, so that the encoder is not shaken by the first steps.
_STD = 0.02
# With two texts apart, a score starts from their cosine, which sentence encoders were trained for.
_COSINE = 1.0
# Examples are sorted by length within pools of so many batches, so that batches are even and still random.
_POOL = 50


class Padded(NamedTuple):
    """Sequences of one batch, padded on the right."""

    ids: Tensor
    mask: Tensor
    types: Tensor
    spans: Tensor


class Packed:
    """All tokens end to end; a batch is gathered on the device, so only its row numbers travel."""

    def __init__(self, rows: Sequence[TokenRow], device: torch.device, pad: int) -> None:
        self.lengths = [len(row.ids) for row in rows]
        lengths = torch.tensor(self.lengths)
        self._lengths = lengths.to(device)
        self._starts = (lengths.cumsum(0) - lengths).to(device)
        self._ids = torch.tensor([i for row in rows for i in row.ids]).to(device)
        self._types = torch.tensor([i for row in rows for i in row.types]).to(device)
        self._spans = torch.tensor([row.spans for row in rows]).to(device)
        self._pad = pad

    def gather(self, rows: Tensor, width: int) -> Padded:
        """These rows, `width` tokens wide."""
        columns = torch.arange(width, device=rows.device)
        mask = columns < self._lengths[rows][:, None]
        places = (self._starts[rows][:, None] + columns).clamp(max=len(self._ids) - 1)
        ids = torch.where(mask, self._ids[places], self._pad)
        return Padded(ids, mask, self._types[places] * mask, self._spans[rows])


class ExampleBatch(NamedTuple):
    """Examples that are run together: row numbers of their joint sequences, and of those of their texts apart.

    TokenRow numbers are those of outputs and targets too: one an example, or one a choice. `slots` says where a row
    stands in a table of examples × `most` choices.
    """

    examples: Tensor
    rows: Tensor
    slots: Tensor
    most: int
    width: int
    apart: Tensor
    apart_width: int


class Packs:
    """The sequences of a split on the device, and the plan of its batches."""

    def __init__(self, sequences: Sequences, examples: int, device: torch.device, pad: int) -> None:
        self.device, self.examples = device, examples
        self.joint = Packed(sequences.joint, device, pad) if sequences.joint else None
        self.apart = Packed(sequences.apart, device, pad) if sequences.apart else None
        self.counts = sequences.counts or [1] * examples
        self._first = [0] * examples
        for i in range(1, examples):
            self._first[i] = self._first[i - 1] + self.counts[i - 1]
        self.tokens = [self._tokens(i) for i in range(examples)]

    def _rows(self, example: int) -> range:
        return range(self._first[example], self._first[example] + self.counts[example])

    def _tokens(self, example: int) -> int:
        joint = sum(self.joint.lengths[row] for row in self._rows(example)) if self.joint else 0
        return joint + (sum(self.apart.lengths[2 * example : 2 * example + 2]) if self.apart else 0)

    def shuffled(self, size: int, draw: random.Random) -> list[list[int]]:
        """Batches of `size` examples in random order, like lengths together."""
        order = list(range(self.examples))
        draw.shuffle(order)
        chosen = alike(order, self.tokens.__getitem__, size, _POOL)
        draw.shuffle(chosen)
        return chosen

    def budgeted(self, budget: int) -> list[list[int]]:
        """Return all examples, the longest first, in batches of at most about `budget` tokens."""
        return self.divided(range(self.examples), budget)

    def divided(self, chosen: Iterable[int], budget: int) -> list[list[int]]:
        """Examples in as few parts of about `budget` tokens as it takes, the longest first."""
        parts: list[list[int]] = []
        largest = 0
        for i in sorted(chosen, key=self.tokens.__getitem__, reverse=True):
            if not parts or (len(parts[-1]) + 1) * largest > budget:
                parts.append([])
                largest = max(self.tokens[i], 1)
            parts[-1].append(i)
        return parts

    def rows_in(self, chosen: Sequence[int]) -> int:
        """Return how many rows of outputs these examples have."""
        return sum(self.counts[i] for i in chosen)

    def batches(self, plan: Sequence[Sequence[int]]) -> Iterator[ExampleBatch]:
        """Yield the planned batches; all their numbers go to the device in one copy."""
        numbers: list[int] = []
        shapes = []
        for chosen in plan:
            rows = [row for i in chosen for row in self._rows(i)]
            most = max(self.counts[i] for i in chosen)
            slots = [at * most + k for at, i in enumerate(chosen) for k in range(self.counts[i])]
            apart = [2 * i + text for i in chosen for text in (0, 1)] if self.apart else []
            width = max(self.joint.lengths[row] for row in rows) if self.joint else 0
            apart_width = max(self.apart.lengths[row] for row in apart) if self.apart else 0
            numbers += [*chosen, *rows, *slots, *apart]
            shapes.append(((len(chosen), len(rows), len(slots), len(apart)), most, width, apart_width))
        held = torch.tensor(numbers, dtype=torch.long).to(self.device)
        start = 0
        for sizes, most, width, apart_width in shapes:
            examples, rows_, slots_, apart_ = held[start : start + sum(sizes)].split(list(sizes))
            start += sum(sizes)
            yield ExampleBatch(examples, rows_, slots_, most, width, apart_, apart_width)


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

    def forward(self, packs: Packs, batch: ExampleBatch) -> Tensor:
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

    def outputs(self, packs: Packs, budget: int) -> Tensor:
        """Return the outputs of all sequences of a set, in order, about `budget` tokens run at once."""
        rows, found = [], []
        for batch in packs.batches(packs.budgeted(budget)):
            rows.append(batch.rows)
            found.append(self(packs, batch).float())
        return torch.cat(found)[torch.cat(rows).argsort()]

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
    """Return one vector per sequence: of the first token, the mean over its tokens, or of its last token."""
    if pool == "cls":
        return states[:, 0]
    if pool == "last":
        last = mask.sum(1) - 1
        return states[torch.arange(len(states), device=states.device), last]
    weights = mask[..., None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def attended(states: Tensor, weights: Tensor, spans: Tensor) -> Tensor:
    """Return one vector per span: the mean of its tokens' vectors, weighted by the softmax of their weights."""
    places = torch.arange(states.shape[1], device=states.device)
    outside = (places < spans[:, :1]) | (places >= spans[:, 1:])
    shares = weights.masked_fill(outside, -torch.inf).softmax(1)
    return torch.einsum("bt,bth->bh", shares, states)


def freeze_pooler(trunk: Any) -> None:
    """Let a trunk's pooler, which nothing reads, not learn."""
    for name, parameter in trunk.named_parameters():
        if "pooler" in name:
            parameter.requires_grad_(False)
