"""ChapterBreak in its published format: splits, works, and examples of a context, its gold suffix and negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Boundary = Literal["chapter", "cause", "dialogue"]


@dataclass(frozen=True, slots=True)
class Example:
    """One suffix identification example; `id` is split/work/number within the work's list."""

    id: str
    split: str
    work: str
    boundary: Boundary
    context: str
    gold: str
    negatives: tuple[str, ...]


@dataclass(frozen=True)
class Examples:
    """All examples of a source, a digest of what was read, and what was left out by reason."""

    items: list[Example]
    source: str
    fingerprint: str
    skipped: dict[str, int]
