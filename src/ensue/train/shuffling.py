"""Shuffled versions of the documents that a coherence model learns from, as the Shuffle Test makes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensue.benchmarks.shuffle.permute import document_seed, sentence_order, shuffled_orders


class Shuffling(NamedTuple):
    """How documents are cut, joined and shuffled, as in the Shuffle Test."""

    block_sizes: Sequence[int] = (1,)
    shuffles: int = 20
    max_sentences: int = 20
    seed: int = 0
    joiner: str = " "


def drawn_orders(
    sentences: Sequence[str], document: str, shuffling: Shuffling
) -> tuple[tuple[int, ...], ...]:
    """Draw a document's shuffled orders of all block sizes, each as numbers of sentences."""
    found: list[tuple[int, ...]] = []
    for size in shuffling.block_sizes:
        seed = document_seed(shuffling.seed, document, size)
        drawn = shuffled_orders(sentences, size, shuffling.shuffles, seed, shuffling.joiner)
        found += [tuple(sentence_order(len(sentences), size, order)) for order in drawn]
    return tuple(dict.fromkeys(found))
