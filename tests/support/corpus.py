"""Small corpora made of the sentences the tiny models' tokenizers know."""

from __future__ import annotations

import random
from pathlib import Path

from tests.support.command import write_lines
from tests.support.tiny import SENTENCES


def document(seed: int, count: int) -> list[str]:
    """So many sentences, no two alike."""
    generator = random.Random(seed)
    return [f"{generator.choice(SENTENCES)[:-1]} {number}." for number in range(count)]


def write_corpus(path: Path, lengths: tuple[int, ...], *, seed: int = 0) -> Path:
    """A JSON Lines file with a document of each length, in sentences."""
    rows = [{"id": f"d{n}", "sentences": document(seed * 1000 + n, count)} for n, count in enumerate(lengths)]
    return write_lines(path, rows)
