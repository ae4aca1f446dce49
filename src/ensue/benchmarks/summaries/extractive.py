"""Summaries made of a document's own sentences: its first, those nearest a question, and the best there could be.

The oracle looks at the references: it is no system but a bound on what choosing sentences can reach. Sentences are
added one at a time, each the one that raises the mean of ROUGE-1 and ROUGE-2 (F1, with stems) most, until none does;
this is done for every reference and the best outcome is kept, since a summary is judged by its best reference.
Bigrams across two sentences are not counted while choosing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.summaries.bertscore import unit
from ensue.metrics.overlap import Gram, Text, Texts, stemmed_words
from ensue.models.protocols import Encoder

ORDERS = (1, 2)
# Less than this is rounding, not a better choice.
_GAIN = 1e-12


class SentenceChoice(NamedTuple):
    """Sentences by their place, in the document's order, and the score they were chosen for."""

    places: tuple[int, ...]
    score: float


class _Grams(NamedTuple):
    """Of one order: how often each sentence has each n-gram of the reference, how often the reference has it, and
    how many n-grams each sentence and the reference have in all."""

    held: NDArray[np.int64]
    wanted: NDArray[np.int64]
    sizes: NDArray[np.int64]
    total: int


def count_words(text: str) -> int:
    """Count a text's words as a budget does."""
    return len(text.split())


def first_words(text: str, words: int) -> str:
    """Cut a text after so many words.

    >>> first_words("The mill  stood still.", 3)
    'The mill stood'
    """
    return " ".join(text.split()[:words])


def lead(sentences: Sequence[str], words: int) -> str:
    """Return as many first sentences as a budget of words holds; of a first one that is too long, its beginning.

    >>> lead(["The mill stood still.", "Nobody came.", "It rained."], 7)
    'The mill stood still. Nobody came.'
    """
    taken: list[str] = []
    left = words
    for sentence in sentences:
        left -= count_words(sentence)
        if left < 0:
            break
        taken.append(sentence)
    if not taken and sentences:
        return first_words(sentences[0], words)
    return " ".join(taken)


class Retriever:
    """Ranks sentences by the cosine of their vector with the question's; every distinct text is encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, NDArray[np.float32]] = {}

    def nearest(self, question: str, sentences: Sequence[str]) -> list[int]:
        """Return the places of the sentences, the nearest first; of equally near ones the earlier."""
        if not sentences:
            return []
        new = [text for text in dict.fromkeys([question, *sentences]) if text not in self._known]
        if new:
            # A text without a vector (no known word in it) is near to nothing.
            vectors = unit(np.asarray(self._encoder.encode(new), dtype=np.float32))
            self._known.update(zip(new, vectors, strict=True))
        cosines = np.stack([self._known[sentence] for sentence in sentences]) @ self._known[question]
        return [int(place) for place in np.argsort(-cosines, kind="stable")]


def fill(order: Sequence[int], costs: Sequence[int], room: int) -> list[int]:
    """Return the places that fit, sorted; they are taken in the given order and one that is too long is passed over.

    >>> fill([2, 0, 1], [3, 4, 5], 8)
    [0, 2]
    """
    taken = []
    for place in order:
        if costs[place] <= room:
            room -= costs[place]
            taken.append(place)
    return sorted(taken)


def nearest_text(order: Sequence[int], sentences: Sequence[str], words: int) -> str:
    """Return the nearest sentences that a budget of words holds; where none does, the nearest one's beginning.

    >>> nearest_text([1, 2, 0], ["It rained.", "The mill stood still.", "Nobody came."], 6)
    'The mill stood still. Nobody came.'
    """
    taken = fill(order, [count_words(sentence) for sentence in sentences], words)
    if not taken and order:
        return first_words(sentences[order[0]], words)
    return " ".join(sentences[place] for place in taken)


def oracle(sentences: Sequence[str], references: Sequence[str]) -> SentenceChoice:
    """Choose the sentences that a greedy search by ROUGE finds best for any one of the references.

    >>> oracle(["It rained.", "The mill stood still.", "Nobody came."], ["A mill stood still; nobody came."]).places
    (1, 2)
    """
    texts = Texts(stemmed_words)
    held = [texts(sentence) for sentence in sentences]
    found = [chosen_for(held, texts(reference)) for reference in references]
    return max(found, key=lambda choice: choice.score, default=SentenceChoice((), 0.0))


def chosen_for(sentences: Sequence[Text], reference: Text) -> SentenceChoice:
    """Choose greedily for one reference; of equally good sentences the first is taken."""
    if not sentences:
        return SentenceChoice((), 0.0)
    tables = [_table(sentences, reference, n) for n in ORDERS]
    have = [np.zeros_like(table.wanted) for table in tables]
    sizes = [0 for _ in tables]
    free = np.ones(len(sentences), dtype=bool)
    places: list[int] = []
    best = 0.0
    while free.any():
        scores = np.mean(
            [
                _f1(np.minimum(now + table.held, table.wanted).sum(axis=1), size + table.sizes, table.total)
                for table, now, size in zip(tables, have, sizes, strict=True)
            ],
            axis=0,
        )
        # Rounded, so that which of two equally good ones is first does not hang on the last bit.
        place = int(np.argmax(np.where(free, scores.round(12), -1.0)))
        if scores[place] <= best + _GAIN:
            break
        best = float(scores[place])
        free[place] = False
        places.append(place)
        have = [now + table.held[place] for table, now in zip(tables, have, strict=True)]
        sizes = [size + int(table.sizes[place]) for table, size in zip(tables, sizes, strict=True)]
    return SentenceChoice(tuple(sorted(places)), best)


def _table(sentences: Sequence[Text], reference: Text, n: int) -> _Grams:
    wanted = reference.counts(n)
    columns: dict[Gram, int] = {gram: column for column, gram in enumerate(wanted)}
    held = np.zeros((len(sentences), len(columns)), dtype=np.int64)
    for row, sentence in enumerate(sentences):
        for gram, count in sentence.counts(n).items():
            if gram in columns:
                held[row, columns[gram]] = count
    return _Grams(
        held,
        np.fromiter(wanted.values(), np.int64, len(wanted)),
        np.array([max(len(sentence) - n + 1, 0) for sentence in sentences], dtype=np.int64),
        max(len(reference) - n + 1, 0),
    )


def _f1(shared: NDArray[np.int64], sizes: NDArray[np.int64], total: int) -> NDArray[np.float64]:
    """Return twice what is shared over both lengths: the harmonic mean of precision and recall."""
    return np.asarray(2.0 * shared / np.maximum(sizes + total, 1), dtype=np.float64)
