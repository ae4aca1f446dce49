"""Texts that people have rated: JSON lines, or a collection of rated summaries such as SummEval's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.grading.values import LARGEST, shown
from ensue.benchmarks.qags.data.files import read_collection
from ensue.errors import EnsueError
from ensue.jsonl import in_words, read_lines
from ensue.text.io.rows import row_from_columns

Splitter = Callable[[str], list[str]]


class Rated(NamedTuple):
    """A text as sentences, its rating, what it is of (texts of one group are not independent), and who wrote it.

    `marks` says of each sentence whether readers stumbled there; empty where nobody said.
    """

    id: str
    group: str
    system: str
    sentences: tuple[str, ...]
    rating: float
    marks: tuple[bool, ...] = ()


class RatedTexts(NamedTuple):
    """Rated texts in the order of their source, and a digest of them."""

    items: list[Rated]
    fingerprint: str
    source: str

    @property
    def have_pairs(self) -> bool:
        """Say whether two texts of any group are rated differently."""
        return len({(one.group, one.rating) for one in self.items}) > len({one.group for one in self.items})


def read_rated(source: str | None, rating: str, split: Splitter, limit: int | None) -> RatedTexts:
    """Read the first rated texts of a .jsonl file, or those about the first articles of a .json collection."""
    if source is None:
        raise EnsueError("ratings needs --data: a .jsonl file of texts with ratings, or SummEval's .json.")
    path = Path(source).expanduser()
    if not path.is_file() or path.suffix.lower() not in (".jsonl", ".ndjson", ".json"):
        there = "is not there" if not path.exists() else "is no such file"
        raise EnsueError(f"{source} {there}; name a .jsonl file of texts with ratings, or SummEval's .json.")
    is_collection = path.suffix.lower() == ".json"
    items = _collection(path, rating, split, limit) if is_collection else _lines(path, rating, split, limit)
    if not items:
        raise EnsueError(f"{source} has no rated text.")
    digest = hashlib.sha256()
    for one in items:
        digest.update(json.dumps(one).encode() + b"\n")
    return RatedTexts(items, digest.hexdigest(), str(source))


def _collection(path: Path, rating: str, split: Splitter, limit: int | None) -> list[Rated]:
    articles = read_collection(path, [rating]).articles[:limit]
    return [
        Rated(
            f"{article.id}/{one.system}", article.id, one.system, tuple(split(one.text)), one.scores[rating]
        )
        for article in articles
        for one in article.summaries
    ]


def _lines(path: Path, rating: str, split: Splitter, limit: int | None) -> list[Rated]:
    items: list[Rated] = []
    seen: dict[str, int] = {}
    for number, row in read_lines(path):
        place = f"{path}, line {number}"
        found = row_from_columns(row, place=place, id=str(number), domain="", text_column=None)
        if found.is_empty:
            raise EnsueError(f"{place} has no text.")
        sentences = tuple(split(found.text)) if found.text is not None else found.sentences or ()
        if found.id in seen:
            raise EnsueError(f"{place} has the id {found.id!r}, which line {seen[found.id]} has already.")
        seen[found.id] = number
        group = _name(row, "group", place) or found.id
        system = _name(row, "system", place)
        marks = _marks(row, len(sentences), place)
        items.append(Rated(found.id, group, system, sentences, _rating(row, rating, place), marks))
        if len(items) == limit:
            break
    return items


def _rating(row: Mapping[str, Any], name: str, place: str) -> float:
    column = name if name in row else "rating"
    if column not in row:
        raise EnsueError(f"{place} has no {name!r}; name the column of its rating with --set rating=NAME.")
    value = row[column]
    if type(value) not in (int, float):
        found, wanted = in_words(value), "a number"
    # What is not a number is within no limits.
    elif -LARGEST <= value <= LARGEST:
        return float(value)
    else:
        found, wanted = shown(value), f"a finite number up to {LARGEST:g}"
    raise EnsueError(
        f"{place} has {found} as {column!r}, where {wanted} is expected; name its column with --set rating=NAME."
    )


def _name(row: Mapping[str, Any], name: str, place: str) -> str:
    value = row.get(name, "")
    if not isinstance(value, str):
        raise EnsueError(f"{place} has {in_words(value)} as {name!r}, where a name is expected.")
    return value


def _marks(row: Mapping[str, Any], count: int, place: str) -> tuple[bool, ...]:
    """Return whether each sentence is marked: a list of true and false (or 1 and 0), one a sentence."""
    value = row.get("marks")
    if value is None:
        return ()
    if not isinstance(value, list) or any(one not in (0, 1) for one in value):
        raise EnsueError(
            f"{place} has {in_words(value)} as 'marks', where a list of true and false is expected."
        )
    if len(value) != count:
        raise EnsueError(
            f"{place} has {len(value)} marks for {count} sentences; give its `sentences` as a list."
        )
    return tuple(map(bool, value))
