"""ChapterBreak in its published format: splits, works, and examples of a context, its gold suffix and negatives."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ensue.benchmarks.chapterbreak.sources import find_files, read_json
from ensue.errors import EnsueError

Boundary = Literal["chapter", "cause", "dialogue"]
BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)

# The task as published has five negatives.
NEGATIVES = 5


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
    notes: dict[str, int] = field(default_factory=dict)


def example_id(boundary: Boundary, split: str, work: str, number: int) -> str:
    """The id of the example with this number (from 0) in its work's list; chapter breaks have no prefix.

    >>> example_id("chapter", "pg19", "1023", 0), example_id("cause", "pg19", "1023", 4)
    ('pg19/1023/0', 'cause:pg19/1023/4')
    """
    return f"{'' if boundary == 'chapter' else boundary + ':'}{split}/{work}/{number}"


def read_examples(source: str, *, split: str | None = None, limit: int | None = None) -> Examples:
    """The examples of a source, or those of one split; with `limit` the first so many per split and boundary.

    A source is a file (.json or .json.gz), a folder of them, or, where no such path exists, a hub data set. What
    a file's name says decides the boundary: cause, dialogue, or else chapter.
    """
    if limit is not None and limit < 1:
        raise EnsueError(f"The limit of examples is {limit}, but must be at least 1.")
    files, left_out = find_files(source)
    reading = _Reading(split, limit)
    for path in files:
        reading.read(path)
    if split is not None and split not in reading.splits:
        there = ", ".join(reading.splits) or "none"
        raise EnsueError(f"{source} has no split {split!r}; it has {there}.")
    if not reading.items:
        why = "; ".join(f"{reason}: {count}" for reason, count in reading.skipped.items())
        raise EnsueError(f"{source} has no example that can be used{f' ({why})' if why else ''}.")
    notes = Counter({"files of shorter contexts not read": left_out}) + reading.notes
    return Examples(reading.items, source, fingerprint(reading.items), dict(reading.skipped), dict(notes))


def fingerprint(examples: list[Example]) -> str:
    """A digest of the examples: their ids and all their texts."""
    digest = hashlib.sha256()
    for example in examples:
        row = [example.id, example.context, example.gold, example.negatives]
        digest.update(json.dumps(row).encode() + b"\n")
    return digest.hexdigest()


def boundary_of(path: Path) -> Boundary:
    """The kind of boundary a file's name states.

    >>> boundary_of(Path("chapterbreak_ctx_512.json")), boundary_of(Path("cause/dialog_ctx_512.json"))
    ('chapter', 'dialogue')
    """
    stem = path.name.lower()
    return "cause" if "cause" in stem else "dialogue" if "dialog" in stem else "chapter"


class _Reading:
    """What was found so far, file by file."""

    def __init__(self, split: str | None, limit: int | None) -> None:
        self.wanted = split
        self.limit = limit
        self.items: list[Example] = []
        self.splits: dict[str, None] = {}
        self.skipped: Counter[str] = Counter()
        self.notes: Counter[str] = Counter()
        self._places: dict[str, Path] = {}
        self._taken: Counter[tuple[str, Boundary]] = Counter()

    def read(self, path: Path) -> None:
        boundary = boundary_of(path)
        data = read_json(path)
        if not isinstance(data, dict):
            raise EnsueError(f"{path} is not ChapterBreak data: its top level must be an object of splits.")
        if not any(data.values()):
            raise EnsueError(f"{path} has no example.")
        for split, works in data.items():
            self.splits.setdefault(split)
            if self.wanted is None or split == self.wanted:
                self._read_split(path, boundary, split, works)

    def _read_split(self, path: Path, boundary: Boundary, split: str, works: object) -> None:
        for work, number, row in _rows(path, split, works):
            if self.limit is not None and self._taken[split, boundary] >= self.limit:
                return
            place = f"{path}, split {split!r}, work {work!r}, number {number}"
            context, gold, negatives = _fields(row, place)
            if reason := _unusable(context, gold, negatives):
                self.skipped[reason] += 1
                continue
            example = Example(
                example_id(boundary, split, work, number), split, work, boundary, context, gold, negatives
            )
            if example.id in self._places:
                other = self._places[example.id]
                raise EnsueError(
                    f"{path} has the example {example.id}, which {other} has already; name one of the files."
                )
            self._places[example.id] = path
            self._taken[split, boundary] += 1
            self.items.append(example)
            if len(negatives) < NEGATIVES:
                self.notes["examples with fewer than five negatives"] += 1


def _rows(path: Path, split: str, works: object) -> Iterator[tuple[str, int, object]]:
    if not isinstance(works, dict):
        raise EnsueError(
            f"{path}, split {split!r} is not ChapterBreak data: it must be an object that maps works to lists "
            f"of examples."
        )
    for work, rows in works.items():
        if not isinstance(rows, list):
            raise EnsueError(f"{path}, split {split!r}, work {work!r} must be a list of examples.")
        for number, row in enumerate(rows):
            yield work, number, row


def _fields(row: object, place: str) -> tuple[str, str, tuple[str, ...]]:
    """The three fields of an example, or a refusal that says where the wrong one is."""
    if not isinstance(row, dict):
        raise EnsueError(f"{place} must be an object with ctx, pos and negs.")
    for key in ("ctx", "pos", "negs"):
        if key not in row:
            raise EnsueError(f"{place} has no {key!r}; an example has ctx, pos and negs.")
    for key in ("ctx", "pos"):
        if not isinstance(row[key], str):
            raise EnsueError(f"{place} has {_kind(row[key])} as {key!r}, but it must be a string.")
    negatives = row["negs"]
    if not isinstance(negatives, list) or not all(isinstance(text, str) for text in negatives):
        raise EnsueError(f"{place} must have a list of strings as 'negs'.")
    return row["ctx"], row["pos"], tuple(negatives)


def _unusable(context: str, gold: str, negatives: tuple[str, ...]) -> str | None:
    """Why an example that is well formed cannot be scored."""
    if not context.strip():
        return "examples with an empty context"
    if not gold.strip():
        return "examples with an empty gold suffix"
    if not negatives:
        return "examples without negatives"
    if not all(text.strip() for text in negatives):
        return "examples with an empty negative"
    return None


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
