"""Discourse Coherence: six sentences in a row, or the same with one of them from another document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from ensue.benchmarks.discoeval.builders.common import Building, Split, balanced, sample
from ensue.benchmarks.discoeval.builders.corpus import SourceText
from ensue.errors import EnsueError

SENTENCES = 6
# The second to the fifth sentence may be replaced.
_REPLACED = (1, 2, 3, 4)
COHERENT, BROKEN = 1, 0
# The most similar document is looked for among so many that share a category.
_SAMPLE = 200
NOTHING_SHARED = "replacements from a document without a category in common"

# A document, and where in it the chosen runs of six sentences begin.
Candidate = tuple[SourceText, tuple[int, ...]]


def build_coherence(texts: Iterator[SourceText], made: Building) -> None:
    """Make lines of every split, as many coherent (1) as not (0), replacements from the split's own documents.

    The two forms of each run stand one after the other, as in the published chat and Wikipedia validation files;
    where the build is unpaired a run comes in one form only.
    """
    wanted = made.sizes if made.options.unpaired else made.sizes.halved()
    drawn = sample(_candidates(texts, made), wanted.total, made.generator("documents"))
    items = [(candidate, len(candidate[1])) for candidate in drawn]
    allotted = wanted.allot(items, made.source)
    made.notes["runs of six sentences that were not needed"] += sum(count for _, count in items) - sum(
        count for chosen in allotted.values() for _, count in chosen
    )
    for split, chosen in allotted.items():
        if len(chosen) < 2:
            raise EnsueError(
                f"{made.source} leaves one document for {split}, so there is none to take a sentence from; ask for "
                f"more, or give more documents."
            )
        runs = [(text, begin) for (text, begins), count in chosen for begin in begins[:count]]
        _write(split, runs, [text for (text, _), _ in chosen], made)


def _candidates(texts: Iterator[SourceText], made: Building) -> Iterator[Candidate]:
    """Draw the runs of each document that is long enough: `per_document` of them, or all."""
    for text in texts:
        last = len(text.sentences) - SENTENCES + 1
        if last < 1:
            made.skipped["documents of fewer than six sentences"] += 1
        elif made.per_document is None or made.per_document >= last:
            yield text, tuple(range(last))
        else:
            drawn = made.generator("runs", text.id).choice(last, made.per_document, replace=False)
            yield text, tuple(sorted(map(int, drawn)))


def _write(
    split: Split, runs: Sequence[tuple[SourceText, int]], texts: Sequence[SourceText], made: Building
) -> None:
    random = made.generator("replacements", split)
    donors = Donors(texts, made.notes)
    places = [_REPLACED[one] for one in balanced(len(runs), len(_REPLACED), random)]
    labels = balanced(len(runs), 2, random)
    lines, paired = made.lines[split], not made.options.unpaired
    for (text, begin), place, label in zip(runs, places, labels, strict=True):
        run = text.sentences[begin : begin + SENTENCES]
        if paired or label == BROKEN:
            lines.add_row(
                text.id, BROKEN, [*run[:place], donors.sentence(text, run, random), *run[place + 1 :]]
            )
        if paired or label == COHERENT:
            lines.add_row(text.id, COHERENT, run)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the categories of two documents that both have.

    >>> overlap(frozenset({"rivers", "maps"}), frozenset({"rivers"}))
    0.5
    """
    return len(one & other) / len(one | other) if one or other else 0.0


class Donors:
    """Documents to take sentences from.

    Those of a document's rarest categories are looked at first, so that a sample finds the similar ones even
    where most documents share some broad category.
    """

    def __init__(self, texts: Sequence[SourceText], notes: Counter[str]) -> None:
        self._texts = texts
        self._notes = notes
        self._members: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            for category in sorted(text.categories):
                self._members.setdefault(category, []).append(number)

    def sentence(self, text: SourceText, avoid: Sequence[str], random: np.random.Generator) -> str:
        """Draw a sentence of another document that is none of those to avoid."""
        for donor in self._ranked(text, random):
            fitting = [sentence for sentence in donor.sentences if sentence not in avoid]
            if fitting:
                if self._members and not text.categories & donor.categories:
                    self._notes[NOTHING_SHARED] += 1
                return fitting[int(random.integers(len(fitting)))]
        raise EnsueError(f"No other document has a sentence to put into {text.place}: give more documents.")

    def _ranked(self, text: SourceText, random: np.random.Generator) -> Iterator[SourceText]:
        """Yield other documents, the most similar of the sample first, then any in random order."""
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

    def _sharing(self, text: SourceText, random: np.random.Generator) -> list[int]:
        """Draw up to a sample of the documents that share a category, in random order within each category."""
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
