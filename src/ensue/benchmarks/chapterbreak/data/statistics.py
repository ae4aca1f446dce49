"""What a build of ChapterBreak counts of its works and examples, in memory that does not grow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from ensue.benchmarks.chapterbreak.data.examples import BOUNDARIES, Boundary, Example


@dataclass
class Extent:
    """Mean, least and most of numbers that come one at a time.

    >>> extent = Extent()
    >>> for number in (3, 8): extent.add(number)
    >>> extent.as_dict()
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
class BuildStatistics:
    """What has been counted so far, work by work."""

    chapters: Extent = field(default_factory=Extent)
    words: Extent = field(default_factory=Extent)
    # By boundary: the examples of each work, the words of contexts, the words of golds.
    _examples: dict[Boundary, tuple[Extent, Extent, Extent]] = field(default_factory=dict)

    def add_examples(self, boundary: Boundary, examples: Sequence[Example]) -> None:
        """Count all examples of one boundary in one work, of which there is at least one."""
        works, contexts, golds = self._examples.setdefault(boundary, (Extent(), Extent(), Extent()))
        works.add(len(examples))
        for example in examples:
            contexts.add(len(example.context.split()))
            golds.add(len(example.gold.split()))

    @property
    def boundaries(self) -> Collection[Boundary]:
        """The boundaries that have examples."""
        return self._examples.keys()

    def state(self) -> list[Any]:
        """Return all counts, for `of`."""
        of_all = asdict(self.chapters), asdict(self.words)
        return [*of_all, {name: [asdict(one) for one in three] for name, three in self._examples.items()}]

    @classmethod
    def of(cls, state: Sequence[Any]) -> Self:
        """Go on from counts."""
        chapters, words, examples = state
        three = {name: (Extent(**a), Extent(**b), Extent(**c)) for name, (a, b, c) in examples.items()}
        return cls(Extent(**chapters), Extent(**words), three)

    def as_dict(self, split: str) -> dict[str, Any]:
        """Return `works`, `chapters` and `words` of the works read, and `examples` by boundary and split."""
        rows: dict[str, Any] = {}
        for boundary in filter(self._examples.__contains__, BOUNDARIES):
            works, contexts, golds = self._examples[boundary]
            row = {"works": works.count, "examples": works.total}
            rows[boundary] = {split: {**row, "context_words": contexts.mean, "gold_words": golds.mean}}
        return {
            "works": self.chapters.count,
            "chapters": self.chapters.as_dict(),
            "words": self.words.as_dict(),
            "examples": rows,
        }
