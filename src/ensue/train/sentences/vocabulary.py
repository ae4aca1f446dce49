"""Words as numbers, and the vector each begins with: of a published set, or none where they are to be learnt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ensue.backends.discourse.words import words_of
from ensue.backends.names import load_model
from ensue.backends.words import WordVectorModel, load_text_vectors
from ensue.benchmarks.nlu.examples import Span
from ensue.errors import EnsueError

LEARNED = "learned"
UNKNOWN = 0
# Vectors that are learnt have the width of those the paper uses; a word seen once teaches nothing.
_LEARNED_WIDTH = 300
_SEEN = 2

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Vocabulary:
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
    """The word vectors of that name: a model's, a text file's, or none where they are to be learnt."""
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
) -> Vocabulary:
    """The words of texts that have a published vector; without those, the words that training texts repeat.

    A word that has no vector gets zeros, as an unknown one: nothing can be learnt for it from other texts.
    """
    counts = Counter(word for text in train for word in words_of(text))
    if published is None:
        kept = [word for word, count in counts.items() if count >= _SEEN]
        return Vocabulary({word: number for number, word in enumerate(kept, 1)}, None)
    counts.update(word for text in other for word in words_of(text))
    kept = [word for word in counts if word in published.rows]
    vectors = np.zeros((len(kept) + 1, published.table.shape[1]), dtype=np.float32)
    vectors[1:] = published.table[[published.rows[word] for word in kept]]
    return Vocabulary({word: number for number, word in enumerate(kept, 1)}, vectors)


def words_and_marks(text: str, marks: Sequence[Span]) -> tuple[list[str], list[tuple[int, int]]]:
    """A text's words, and from which to which of them each mark goes; words end where a mark begins or ends.

    >>> words_and_marks("The bank's door.", [Span(0, 4, 8)])
    (['the', 'bank', "'s", 'door', '.'], [(1, 2)])
    """
    cuts = sorted({0, len(text), *(mark.start for mark in marks), *(mark.end for mark in marks)})
    words: list[str] = []
    place = {0: 0}
    for begin, end in pairwise(cuts):
        words += words_of(text[begin:end])
        place[end] = len(words)
    return words, [(place[mark.start], place[mark.end]) for mark in marks]
