"""Sentence Position and Binary Sentence Ordering: where a sentence stood, and which of two came first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ensue.benchmarks.discoeval.builders.common import Building, balanced, sample
from ensue.benchmarks.discoeval.builders.corpus import SourceText
from ensue.errors import EnsueError

OTHERS = ("in-order", "shuffled")
# Both tasks are made of the first sentences of a document.
SENTENCES = 5


def moved(sentences: Sequence[str], place: int) -> list[str]:
    """Return the sentences with the one at `place` put first and the others left in their order.

    >>> moved("abcde", 3)
    ['d', 'a', 'b', 'c', 'e']
    """
    return [sentences[place], *sentences[:place], *sentences[place + 1 :]]


def build_positions(texts: Iterator[SourceText], made: Building) -> None:
    """Make one line of each document, of its first five sentences; the labels of a split are balanced.

    In stories a document of any other length is left out. The published Wikipedia files have the others
    shuffled too, those of arXiv and ROC have them in order, which is what the paper describes.
    """
    others = made.options.others or OTHERS[0]
    if others not in OTHERS:
        raise EnsueError(f"The other sentences are {' or '.join(OTHERS)}, not {others!r}.")
    drawn = sample(_fives(texts, made), made.sizes.total, made.generator("documents"))
    for split, items in made.sizes.allot([(each, 1) for each in drawn], made.source).items():
        random = made.generator("positions", split)
        places = balanced(len(items), SENTENCES, random)
        for (text, _), place in zip(items, places, strict=True):
            columns = moved(text.sentences, place)
            if others == "shuffled":
                columns[1:] = [columns[1:][int(one)] for one in random.permutation(SENTENCES - 1)]
            made.lines[split].add_row(text.id, place, columns)


def _fives(texts: Iterator[SourceText], made: Building) -> Iterator[SourceText]:
    """Cut documents to their first five sentences; those of which these will not do are counted."""
    for text in texts:
        if len(text.sentences) < SENTENCES:
            made.skipped["documents of fewer than five sentences"] += 1
        elif made.spec.name == "SP/rocstory" and len(text.sentences) > SENTENCES:
            made.skipped["stories of more than five sentences"] += 1
        elif len(set(text.sentences[:SENTENCES])) < SENTENCES:
            made.skipped["documents that repeat one of their first five sentences"] += 1
        else:
            yield text._replace(sentences=text.sentences[:SENTENCES])


def build_pairs(texts: Iterator[SourceText], made: Building) -> None:
    """Make one pair of each document in its true order, any two neighbours of its first five sentences alike."""
    drawn = sample(_pairs(texts, made), made.sizes.total, made.generator("documents"))
    for split, items in made.sizes.allot([(each, 1) for each in drawn], made.source).items():
        for (document, pair), _ in items:
            made.lines[split].add_row(document, None, pair)


def _pairs(texts: Iterator[SourceText], made: Building) -> Iterator[tuple[str, tuple[str, str]]]:
    for text in texts:
        first = text.sentences[:SENTENCES]
        pairs = [(a, b) for a, b in pairwise(first) if a != b]
        if len(first) < 2:
            made.skipped["documents of fewer than two sentences"] += 1
        elif not pairs:
            made.skipped["documents without two different sentences in a row"] += 1
        else:
            place = int(made.generator(text.id).integers(len(pairs)))
            yield text.id, pairs[place]
