"""Sequences packed into one long tensor on the device, and batches of like length drawn from them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ensue.train.finetune.inputs import Row, Sequences

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

    def __init__(self, rows: Sequence[Row], device: torch.device, pad: int) -> None:
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


class Batch(NamedTuple):
    """Examples that are run together: row numbers of their joint sequences, and of those of their texts apart.

    Row numbers are those of outputs and targets too: one an example, or one a choice. `slots` says where a row
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
        chosen: list[list[int]] = []
        for start in range(0, len(order), size * _POOL):
            pool = sorted(order[start : start + size * _POOL], key=self.tokens.__getitem__)
            chosen += [pool[i : i + size] for i in range(0, len(pool), size)]
        draw.shuffle(chosen)
        return chosen

    def budgeted(self, budget: int) -> list[list[int]]:
        """All examples, the longest first, in batches of at most about `budget` tokens."""
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
        """How many rows of outputs these examples have."""
        return sum(self.counts[i] for i in chosen)

    def batches(self, plan: Sequence[Sequence[int]]) -> Iterator[Batch]:
        """The planned batches; all their numbers go to the device in one copy."""
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
            yield Batch(examples, rows_, slots_, most, width, apart_, apart_width)
