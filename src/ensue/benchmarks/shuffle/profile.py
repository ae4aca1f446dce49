"""Surprisal sentence by sentence: where does a text stop following?"""

from __future__ import annotations

from typing import Any, NamedTuple

from ensue.benchmarks.shuffle.permute import sentence_order
from ensue.models.request import Score
from ensue.scoring.surprisal import joined_ends, profile_version
from ensue.text.documents import Document


class Version(NamedTuple):
    """One shuffled version of a document: its block order and its text."""

    document: Document
    block_size: int
    number: int
    order: tuple[int, ...]
    text: str


def profile_row(
    document: Document,
    joiner: str,
    original: Score,
    version: Version,
    shuffled: Score,
    accuracy: dict[str, float],
) -> dict[str, Any]:
    """A line of profiles.jsonl: the document as it is and as first shuffled, with each sentence's surprisal."""
    order = sentence_order(len(document.sentences), version.block_size, version.order)
    mixed = [document.sentences[i] for i in order]
    name = f"shuffled (block size {version.block_size})"
    sentences, unmixed = list(document.sentences), list(range(len(order)))
    versions = [
        profile_version("original", sentences, unmixed, joined_ends(sentences, joiner), original),
        profile_version(name, mixed, order, joined_ends(mixed, joiner), shuffled),
    ]
    return {
        "document": document.id,
        "domain": document.domain,
        "accuracy": accuracy,
        "versions": [v for v in versions if v is not None],
    }
