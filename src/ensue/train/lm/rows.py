"""Documents as rows of tokens: whole texts laid side by side until a row is full, none of which sees another."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ensue.scoring.tokens import tokenise

Ints = npt.NDArray[np.int32]


class Frame(NamedTuple):
    """What stands before and after each text's own tokens."""

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def extra(self) -> int:
        """How many tokens are not of the text."""
        return len(self.before) + len(self.after)


class Pieces(NamedTuple):
    """Texts as tokens with the special ones around them, and how many texts were divided for being too long."""

    ids: list[Ints]
    divided: int


def make_pieces(tokenizer: Any, texts: Sequence[str], frame: Frame, width: int) -> Pieces:
    """Tokenise texts; one of more than `width` tokens is divided, and each part of it is a text of its own.

    Parts are of even length. One of a single token is left out: nothing in it could be predicted.
    """
    room = width - frame.extra
    found: list[Ints] = []
    divided = 0
    for ids in tokenise(tokenizer, texts):
        parts = -(-len(ids) // room)
        divided += parts > 1
        found += [
            np.asarray([*frame.before, *part, *frame.after], dtype=np.int32)
            for part in np.array_split(ids, max(parts, 1))
            if len(part) and len(part) + len(frame.before) > 1
        ]
    return Pieces(found, divided)


def pack(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Put texts into rows of `width` tokens: the longest first, each where it leaves the least room (best fit).

    >>> pack([3, 5, 4, 2, 6], 8)
    [[4, 3], [1, 0], [2]]
    """
    rows: list[list[int]] = []
    room: list[tuple[int, int]] = []
    for piece in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        place = bisect_left(room, (lengths[piece], -1))
        if place == len(room):
            rows.append([])
            left, row = width, len(rows) - 1
        else:
            left, row = room.pop(place)
        rows[row].append(piece)
        insort(room, (left - lengths[piece], row))
    return rows


class RowBatch(NamedTuple):
    """Rows that are run together, on the device: tokens, and of each token which text of its row it belongs to
    (counted from 1; 0 is what fills a row's end), where in its text it stands, and whether it is the text's own.

    `text_count` and `token_count` are how many there are, known without asking the device; `number` is which batch
    it is.
    """

    ids: Tensor
    texts: Tensor
    places: Tensor
    own: Tensor
    text_count: int
    token_count: int
    number: int


class Rows:
    """Packed texts on the device; a batch is gathered there, so that only its row numbers travel."""

    def __init__(
        self, pieces: Sequence[Ints], frame: Frame, width: int, device: torch.device, *, packed: bool
    ) -> None:
        lengths = [len(piece) for piece in pieces]
        held = pack(lengths, width) if packed else [[piece] for piece in range(len(pieces))]
        self.widths = [sum(lengths[i] for i in row) for row in held]
        width = max(self.widths, default=1)
        ids = np.zeros((len(held), width), dtype=np.int32)
        texts, places = np.zeros_like(ids, dtype=np.int16), np.zeros_like(ids)
        own = np.zeros_like(ids, dtype=bool)
        for row, members in enumerate(held):
            begin = 0
            for number, piece in enumerate(members, 1):
                end = begin + lengths[piece]
                ids[row, begin:end] = pieces[piece]
                texts[row, begin:end] = number
                places[row, begin:end] = np.arange(lengths[piece])
                own[row, begin + len(frame.before) : end - len(frame.after)] = True
                begin = end
        self.texts_in = [len(members) for members in held]
        self._tables = [torch.from_numpy(table).to(device) for table in (ids, texts, places, own)]
        self._device, self._width = device, width

    def __len__(self) -> int:
        return len(self.widths)

    @property
    def filled(self) -> float:
        """The share of the rows that holds text."""
        return sum(self.widths) / max(len(self) * self._width, 1)

    def batches(self, size: int, draw: np.random.Generator | None = None) -> Iterator[RowBatch]:
        """Yield all rows, in random order or as they are; all their numbers go to the device in one copy."""
        order = np.arange(len(self)) if draw is None else draw.permutation(len(self))
        there = torch.from_numpy(order).to(self._device)
        for number, begin in enumerate(range(0, len(order), size)):
            chosen = order[begin : begin + size].tolist()
            width = max(self.widths[row] for row in chosen)
            ids, texts, places, own = (table[there[begin : begin + size], :width] for table in self._tables)
            count, tokens = (sum(values[row] for row in chosen) for values in (self.texts_in, self.widths))
            yield RowBatch(ids, texts, places, own, count, tokens, number)
