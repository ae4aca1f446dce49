"""Sentence Position: five sentences in a row, one of them moved to the front, and where it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ensue.benchmarks.discoeval.builders.common import Made, Reservoir, Sizes, balanced, generator
from ensue.benchmarks.discoeval.builders.corpus import Text
from ensue.errors import EnsueError

OTHERS = ("in-order", "shuffled")
SENTENCES = 5


def moved(sentences: Sequence[str], place: int) -> list[str]:
    """The sentences with the one at `place` put first and the others left in their order.

    >>> moved("abcde", 3)
    ['d', 'a', 'b', 'c', 'e']
    """
    return [sentences[place], *sentences[:place], *sentences[place + 1 :]]


def build_positions(
    texts: Iterator[Text],
    source: str,
    sizes: Sizes,
    seed: int,
    exactly_five: bool,
    others: str,
    made: Made,
) -> None:
    """One line for each document, of its first five sentences; the labels of a split are balanced.

    In stories a document of any other length is left out. The published Wikipedia files have the others
    shuffled too, those of arXiv and ROC have them in order, which is what the paper describes.
    """
    if others not in OTHERS:
        raise EnsueError(f"The other sentences are {' or '.join(OTHERS)}, not {others!r}.")
    sample: Reservoir[tuple[str, tuple[str, ...]]] = Reservoir(
        sizes.total, generator(seed, "SP", "documents")
    )
    for text in texts:
        if len(text.sentences) < SENTENCES:
            made.skipped["documents of fewer than five sentences"] += 1
        elif exactly_five and len(text.sentences) > SENTENCES:
            made.skipped["stories of more than five sentences"] += 1
        elif len(set(text.sentences[:SENTENCES])) < SENTENCES:
            made.skipped["documents that repeat one of their first five sentences"] += 1
        else:
            sample.offer((text.id, text.sentences[:SENTENCES]))
    allotted = sizes.allot([(each, 1) for each in sample.shuffled()], source)
    for split, items in allotted.items():
        random = generator(seed, "SP", "positions", split)
        places = balanced(len(items), SENTENCES, random)
        for ((document, sentences), _), place in zip(items, places, strict=True):
            columns = moved(sentences, place)
            if others == "shuffled":
                columns[1:] = _shuffled(columns[1:], random)
            made.lines[split].add_row(document, place, columns)


def _shuffled(sentences: Sequence[str], random: np.random.Generator) -> list[str]:
    return [sentences[int(place)] for place in random.permutation(len(sentences))]
