"""Pairs that come with the package, and how a file of pairs is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES, in_words, read_lines
from ensue.text.io.rows import checked

BUNDLED = "bundled"


class Pair(NamedTuple):
    """Two endings of a context, of which the good one follows; pairs of one group share their texts."""

    id: str
    phenomenon: str
    group: str
    context: str
    good: str
    bad: str


class Pairs(NamedTuple):
    """Pairs in the order of their source, and a digest of them."""

    items: list[Pair]
    fingerprint: str
    source: str


def read_pairs(source: str | None, limit: int | None = None) -> Pairs:
    """Read the first pairs of a JSON-lines file: `good` and `bad`, and `context`, `phenomenon`, `id`, `group`."""
    if source is None or source == BUNDLED:
        with as_file(files("ensue.benchmarks.pairs.data") / "pairs.jsonl") as path:
            return _read(path, BUNDLED, limit)
    path = Path(source).expanduser()
    if not path.is_file() or path.suffix.lower() not in JSON_LINES:
        there = "is not there" if not path.exists() else "is no file of JSON lines"
        raise EnsueError(f"{source} {there}; name a .jsonl file of pairs with `good` and `bad`.")
    return _read(path, str(source), limit)


def _read(path: Path, source: str, limit: int | None) -> Pairs:
    items: list[Pair] = []
    places: dict[str, str] = {}
    for number, row in read_lines(path):
        pair = _pair(row, f"{path}, line {number}", str(number))
        if pair.id in places:
            raise EnsueError(
                f"{path}, line {number} has the id {pair.id!r}, which {places[pair.id]} has already."
            )
        places[pair.id] = f"line {number}"
        items.append(pair)
        if len(items) == limit:
            break
    if not items:
        raise EnsueError(f"{source} has no pair.")
    return Pairs(items, _digest(items), source)


def _pair(row: Mapping[str, Any], place: str, number: str) -> Pair:
    context = _text(row, "context", place, "")
    good, bad = _text(row, "good", place), _text(row, "bad", place)
    if good == bad:
        raise EnsueError(f"{place} has the same text as `good` and as `bad`.")
    id = _text(row, "id", place, number)
    return Pair(
        id, _text(row, "phenomenon", place, "all"), _text(row, "group", place, id), context, good, bad
    )


def _text(row: Mapping[str, Any], name: str, place: str, default: str | None = None) -> str:
    value = row.get(name)
    if value is None and default is not None:
        return default
    if name not in row:
        raise EnsueError(f"{place} has no {name!r}, only {', '.join(map(repr, row)) or 'nothing'}.")
    if not isinstance(value, str) or not value.strip():
        raise EnsueError(f"{place} has {in_words(value)} as {name!r}, where a text is expected.")
    return checked(value, place)


def _digest(items: Iterable[Pair]) -> str:
    digest = hashlib.sha256()
    for pair in items:
        digest.update(json.dumps(pair).encode() + b"\n")
    return digest.hexdigest()
