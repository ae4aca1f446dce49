"""Binary Sentence Ordering: two sentences in a row, written in their true order as the published files are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ensue.benchmarks.discoeval.builders.common import Made, Reservoir, Sizes, generator
from ensue.benchmarks.discoeval.builders.corpus import Text

# Pairs come from where those of Sentence Position come from: the first five sentences.
_FIRST = 5


def build_pairs(texts: Iterator[Text], source: str, sizes: Sizes, seed: int, made: Made) -> None:
    """One pair of each document, any two neighbours among its first five sentences as likely as any others."""
    sample: Reservoir[tuple[str, tuple[str, str]]] = Reservoir(
        sizes.total, generator(seed, "BSO", "documents")
    )
    for text in texts:
        first = text.sentences[:_FIRST]
        pairs = [(a, b) for a, b in pairwise(first) if a != b]
        if len(first) < 2:
            made.skipped["documents of fewer than two sentences"] += 1
        elif not pairs:
            made.skipped["documents without two different sentences in a row"] += 1
        else:
            place = int(generator(seed, "BSO", text.id).integers(len(pairs)))
            sample.offer((text.id, pairs[place]))
    for split, items in sizes.allot([(each, 1) for each in sample.shuffled()], source).items():
        for (document, pair), _ in items:
            made.lines[split].add_row(document, None, pair)
