"""Rows of texts as numbers of words: every distinct text kept once, batches padded as long as need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ensue.benchmarks.nlu.framing import Row
from ensue.train.sentences.vocabulary import UNKNOWN, Ints, Vocabulary, words_and_marks


class Batch(NamedTuple):
    """Distinct texts [texts, words] and rows of them.

    `sides` [rows, 1 or 2] are the texts of each row; `marks` [rows, 2, 3] are text, first word and end of each mark
    (no marks: [rows, 0, 3]). Lengths stay on the CPU.
    """

    words: Tensor
    lengths: Tensor
    sides: Tensor
    marks: Tensor


@dataclass(frozen=True)
class Numbered:
    """Rows as numbers of texts, `sides` and `marks` as in a batch, the words of each text, and how many were cut."""

    texts: list[Ints]
    sides: Ints
    marks: Ints
    cut: int = 0

    @property
    def lengths(self) -> Ints:
        """The words of the longest text of every row."""
        sizes = np.fromiter((len(text) for text in self.texts), dtype=np.int64, count=len(self.texts))
        longest: Ints = sizes[self.sides].max(axis=1)
        return longest

    def batch(self, rows: Ints, device: Any) -> Batch:
        """Some rows; a text that several share is there once."""
        used, places = np.unique(self.sides[rows], return_inverse=True)
        texts = [self.texts[number] for number in used]
        lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
        table = np.zeros((len(texts), int(lengths.max())), dtype=np.int64)
        table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(texts)
        marks = self.marks[rows].copy()
        marks[..., 0] = np.searchsorted(used, marks[..., 0])
        return Batch(
            torch.from_numpy(table).to(device),
            torch.from_numpy(lengths),
            torch.from_numpy(places.reshape(len(rows), -1)).to(device),
            torch.from_numpy(marks).to(device),
        )


def number(rows: Sequence[Row], vocabulary: Vocabulary, max_words: int) -> Numbered:
    """Rows as numbers; texts are cut to so many words, and what is marked beyond them is lost."""
    texts: list[Ints] = []
    known: dict[tuple[Any, ...], tuple[int, list[tuple[int, int]]]] = {}
    sides, marks, cut = [], [], 0
    for row in rows:
        found = []
        for place, text in enumerate(row.texts):
            own = tuple(mark for mark in row.marks if mark.text == place)
            key = (text, *((mark.start, mark.end) for mark in own))
            if key not in known:
                words, marked = words_and_marks(text, own)
                cut += len(words) > max_words
                numbers = vocabulary.number(words[:max_words]) or [UNKNOWN]
                known[key] = (len(texts), [(min(a, max_words), min(b, max_words)) for a, b in marked])
                texts.append(np.asarray(numbers, dtype=np.int64))
            found.append(known[key])
        sides.append([text for text, _ in found])
        left = [iter(marked) for _, marked in found]
        marks.append([(found[mark.text][0], *next(left[mark.text])) for mark in row.marks])
    shape = (len(rows), len(rows[0].marks), 3)
    return Numbered(
        texts, np.asarray(sides, dtype=np.int64), np.asarray(marks, dtype=np.int64).reshape(shape), cut
    )
