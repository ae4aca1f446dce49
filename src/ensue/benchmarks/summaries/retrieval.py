"""The sentences of a document nearest to a question, in the document's order, as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.summaries.extractive import count_words, first_words
from ensue.models.protocols import Encoder

Vectors = npt.NDArray[np.float32]


class Retriever:
    """Ranks sentences by the cosine of their vector with the question's; every distinct text is encoded once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Vectors] = {}

    @property
    def name(self) -> str:
        return self._encoder.card.name

    def learn(self, texts: Sequence[str]) -> None:
        """Encode what is not known yet, all together."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if not new:
            return
        vectors = np.asarray(self._encoder.encode(new), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # A text without a vector (no known word in it) is near to nothing.
        units = np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0), dtype=np.float32)
        self._known.update(zip(new, units, strict=True))

    def nearest(self, question: str, sentences: Sequence[str]) -> list[int]:
        """The places of the sentences, the nearest first; of equally near ones the earlier."""
        if not sentences:
            return []
        self.learn([question, *sentences])
        cosines = np.stack([self._known[sentence] for sentence in sentences]) @ self._known[question]
        return [int(place) for place in np.argsort(-cosines, kind="stable")]


def fill(order: Sequence[int], costs: Sequence[int], room: int) -> list[int]:
    """The places that fit, taken in the given order; one that is too long is passed over. They come back sorted.

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
    """The nearest sentences that a budget of words holds, in order; where none does, the nearest one's beginning.

    >>> nearest_text([1, 2, 0], ["It rained.", "The mill stood still.", "Nobody came."], 6)
    'The mill stood still. Nobody came.'
    """
    taken = fill(order, [count_words(sentence) for sentence in sentences], words)
    if not taken and order:
        return first_words(sentences[order[0]], words)
    return " ".join(sentences[place] for place in taken)
