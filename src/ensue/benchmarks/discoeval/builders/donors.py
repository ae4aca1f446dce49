"""Sentences from another document, one with similar categories where documents have any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ensue.benchmarks.discoeval.builders.corpus import Text
from ensue.errors import EnsueError

# The most similar document is looked for among so many that share a category.
_SAMPLE = 200
NOTHING_SHARED = "replacements from a document without a category in common"


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the categories of two documents that both have.

    >>> overlap(frozenset({"rivers", "maps"}), frozenset({"rivers"}))
    0.5
    """
    return len(one & other) / len(one | other) if one or other else 0.0


class Donors:
    """Documents to take sentences from.

    Those of a document's rarest categories are looked at first, so that a sample finds the similar ones even
    where most documents share some broad category.
    """

    def __init__(self, texts: Sequence[Text], notes: Counter[str]) -> None:
        self._texts = texts
        self._notes = notes
        self._members: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            for category in sorted(text.categories):
                self._members.setdefault(category, []).append(number)

    def sentence(self, text: Text, avoid: Sequence[str], random: np.random.Generator) -> str:
        """A sentence of another document that is none of those to avoid."""
        for donor in self._ranked(text, random):
            fitting = [sentence for sentence in donor.sentences if sentence not in avoid]
            if fitting:
                if self._members and not text.categories & donor.categories:
                    self._notes[NOTHING_SHARED] += 1
                return fitting[int(random.integers(len(fitting)))]
        raise EnsueError(f"No other document has a sentence to put into {text.place}: give more documents.")

    def _ranked(self, text: Text, random: np.random.Generator) -> Iterator[Text]:
        """Other documents, the most similar of the sample first, and after the sample any in random order."""
        sample = self._sharing(text, random)
        # The sort keeps the random order among equals.
        sample.sort(key=lambda number: -overlap(text.categories, self._texts[number].categories))
        for number in sample:
            yield self._texts[number]
        # Nearly always the first one drawn is another document with a sentence that fits.
        for _ in range(8):
            number = int(random.integers(len(self._texts)))
            if self._texts[number].id != text.id:
                yield self._texts[number]
        for number in map(int, random.permutation(len(self._texts))):
            if self._texts[number].id != text.id:
                yield self._texts[number]

    def _sharing(self, text: Text, random: np.random.Generator) -> list[int]:
        """Up to a sample of the documents that share a category, in random order within each category."""
        chosen: dict[int, None] = {}
        for category in sorted(text.categories, key=lambda name: (len(self._members.get(name, ())), name)):
            members = self._members.get(category, [])
            # Twice the sample leaves enough even if half were chosen before.
            drawn = random.permutation(len(members))[: 2 * _SAMPLE]
            for number in (members[int(place)] for place in drawn):
                if len(chosen) == _SAMPLE:
                    return list(chosen)
                if self._texts[number].id != text.id:
                    chosen.setdefault(number)
        return list(chosen)
