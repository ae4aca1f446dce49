"""A task's examples as aligned columns: sentences, gold labels or scores, and where each row stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.senteval.catalog import Task


@dataclass
class Rows:
    """A split, or a set of an STS year, as columns; `texts` holds one list of sentences, or two for pairs."""

    ids: list[str] = field(default_factory=list)
    texts: tuple[list[str], ...] = ()
    gold: list[float] = field(default_factory=list)

    def add(self, name: str, sentences: Sequence[str], gold: float) -> None:
        """Append a row."""
        if not self.texts:
            self.texts = tuple([] for _ in sentences)
        self.ids.append(name)
        self.gold.append(gold)
        for column, sentence in zip(self.texts, sentences, strict=True):
            column.append(sentence)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def scores(self) -> NDArray[np.float64]:
        """The gold as scores."""
        return np.asarray(self.gold, dtype=np.float64)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The gold as class numbers."""
        return np.asarray(self.gold, dtype=np.int64)


@dataclass(frozen=True)
class TaskData:
    """A task with its files read: rows by split (by set for STS), its classes, and what there is to say of it."""

    task: Task
    parts: dict[str, Rows]
    classes: tuple[str, ...]
    skipped: Counter[str]
    notes: Counter[str]

    def sentences(self) -> Iterator[str]:
        """Every sentence, repeated ones too."""
        for rows in self.parts.values():
            for column in rows.texts:
                yield from column

    def place_of(self, sentence: str) -> str | None:
        """The part and line at which a sentence first stands, where it does."""
        for rows in self.parts.values():
            for column in rows.texts:
                if sentence in column:
                    part, _, number = rows.ids[column.index(sentence)].rpartition("/")
                    return f"{self.task.name}, {part}, line {number}"
        return None
