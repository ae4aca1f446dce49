"""How much there is: chapters and words a work, works and examples by boundary and split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ensue.benchmarks.chapterbreak.data import BOUNDARIES, Boundary, Example


@dataclass
class Spread:
    """Mean, least and most of numbers that come one at a time.

    >>> spread = Spread()
    >>> for number in (3, 8): spread.add(number)
    >>> spread.as_dict()
    {'mean': 5.5, 'min': 3, 'max': 8}
    """

    count: int = 0
    total: int = 0
    least: int | None = None
    most: int | None = None

    def add(self, number: int) -> None:
        self.count += 1
        self.total += number
        self.least = number if self.least is None else min(self.least, number)
        self.most = number if self.most is None else max(self.most, number)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    def as_dict(self) -> dict[str, float | int | None]:
        return {"mean": self.mean, "min": self.least, "max": self.most}


@dataclass
class _Row:
    """The examples of one boundary and split."""

    works: int = 0
    context_words: Spread = field(default_factory=Spread)
    gold_words: Spread = field(default_factory=Spread)

    def as_dict(self) -> dict[str, Any]:
        return {
            "works": self.works,
            "examples": self.gold_words.count,
            "context_words": self.context_words.mean,
            "gold_words": self.gold_words.mean,
        }


class Statistics:
    """Counts that grow with every work, in memory that does not."""

    def __init__(self) -> None:
        self.chapters = Spread()
        self.words = Spread()
        self._rows: dict[tuple[Boundary, str], _Row] = {}

    @property
    def examples(self) -> int:
        return sum(row.gold_words.count for row in self._rows.values())

    def add_work(self, chapters: int, words: int) -> None:
        """A work that was read, whether or not it gives examples."""
        self.chapters.add(chapters)
        self.words.add(words)

    def add_examples(self, boundary: Boundary, split: str, examples: Iterable[Example]) -> None:
        """All examples of one boundary in one work."""
        row = self._rows.setdefault((boundary, split), _Row())
        before = row.gold_words.count
        for example in examples:
            row.context_words.add(len(example.context.split()))
            row.gold_words.add(len(example.gold.split()))
        row.works += row.gold_words.count > before

    def as_dict(self) -> dict[str, Any]:
        """`works`, `chapters` and `words` of the works read; `examples` by boundary and split."""
        rows: dict[str, dict[str, Any]] = {}
        for boundary, split in sorted(self._rows, key=lambda key: (BOUNDARIES.index(key[0]), key[1])):
            rows.setdefault(boundary, {})[split] = self._rows[boundary, split].as_dict()
        return {
            "works": self.chapters.count,
            "chapters": self.chapters.as_dict(),
            "words": self.words.as_dict(),
            "examples": rows,
        }


def statistics_of(examples: Iterable[Example]) -> dict[str, dict[str, Any]]:
    """Works, examples, mean words of contexts and of gold suffixes, by boundary and split."""
    works: dict[tuple[Boundary, str, str], list[Example]] = {}
    for example in examples:
        works.setdefault((example.boundary, example.split, example.work), []).append(example)
    found = Statistics()
    for (boundary, split, _), group in works.items():
        found.add_examples(boundary, split, group)
    rows: dict[str, dict[str, Any]] = found.as_dict()["examples"]
    return rows
