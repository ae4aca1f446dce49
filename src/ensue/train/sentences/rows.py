"""Texts as numbers of words: a vocabulary with the vector each word begins with, and rows in padded batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ensue.backends.discourse.words import words_of
from ensue.backends.names import load_model
from ensue.backends.words import WordVectorModel, load_text_vectors
from ensue.benchmarks.nlu.examples import TextSpan
from ensue.benchmarks.nlu.framing import TextRow
from ensue.errors import EnsueError

LEARNED = "learned"
UNKNOWN = 0
# Vectors that are learnt have the width of those the paper uses; a word seen once teaches nothing.
_LEARNED_WIDTH = 300
_SEEN = 2

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TextVocabulary:
    """The number of each word from 1 (0 is every other word), and vectors by number; None where they are learnt."""

    numbers: dict[str, int]
    vectors: npt.NDArray[np.float32] | None

    @property
    def width(self) -> int:
        return _LEARNED_WIDTH if self.vectors is None else int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.numbers) + 1

    def number(self, words: Iterable[str]) -> list[int]:
        return [self.numbers.get(word, UNKNOWN) for word in words]


def published_vectors(name: str) -> WordVectorModel | None:
    """Return the word vectors of that name: a model's, a text file's, or none where they are to be learnt."""
    if name == LEARNED:
        return None
    path = Path(name).expanduser()
    model = load_text_vectors(path) if path.is_file() else load_model(name)
    if not isinstance(model, WordVectorModel):
        raise EnsueError(
            f"vectors={name} is not a set of word vectors; give glove-50d, a text file of them or learned."
        )
    return model


def vocabulary_of(
    published: WordVectorModel | None, train: Iterable[str], other: Iterable[str]
) -> TextVocabulary:
    """Return the words of texts that have a published vector; without those, the words that training texts repeat.

    A word that has no vector gets zeros, as an unknown one: nothing can be learnt for it from other texts.
    """
    counts = Counter(word for text in train for word in words_of(text))
    if published is None:
        kept = [word for word, count in counts.items() if count >= _SEEN]
        return TextVocabulary({word: number for number, word in enumerate(kept, 1)}, None)
    counts.update(word for text in other for word in words_of(text))
    kept = [word for word in counts if word in published.rows]
    vectors = np.zeros((len(kept) + 1, published.table.shape[1]), dtype=np.float32)
    vectors[1:] = published.table[[published.rows[word] for word in kept]]
    return TextVocabulary({word: number for number, word in enumerate(kept, 1)}, vectors)


def words_and_marks(text: str, marks: Sequence[TextSpan]) -> tuple[list[str], list[tuple[int, int]]]:
    """Return a text's words, and from which to which of them each mark goes; words end where a mark begins or ends.

    >>> words_and_marks("The bank's door.", [TextSpan(0, 4, 8)])
    (['the', 'bank', "'s", 'door', '.'], [(1, 2)])
    """
    cuts = sorted({0, len(text), *(mark.start for mark in marks), *(mark.end for mark in marks)})
    words: list[str] = []
    place = {0: 0}
    for begin, end in pairwise(cuts):
        words += words_of(text[begin:end])
        place[end] = len(words)
    return words, [(place[mark.start], place[mark.end]) for mark in marks]


class TextBatch(NamedTuple):
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

    def batch(self, rows: Ints, device: Any) -> TextBatch:
        """Some rows; a text that several share is there once."""
        used, places = np.unique(self.sides[rows], return_inverse=True)
        texts = [self.texts[number] for number in used]
        lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
        table = np.zeros((len(texts), int(lengths.max())), dtype=np.int64)
        table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(texts)
        marks = self.marks[rows].copy()
        marks[..., 0] = np.searchsorted(used, marks[..., 0])
        return TextBatch(
            torch.from_numpy(table).to(device),
            torch.from_numpy(lengths),
            torch.from_numpy(places.reshape(len(rows), -1)).to(device),
            torch.from_numpy(marks).to(device),
        )


def number(rows: Sequence[TextRow], vocabulary: TextVocabulary, max_words: int) -> Numbered:
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
