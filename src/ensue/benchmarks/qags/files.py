"""Entries of a JSON file that is one object or one list, each with the line on which it begins."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

from ensue.benchmarks.nlu.files import Row
from ensue.errors import EnsueError

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
_BYTE_ORDER_MARK = "\ufeff"
_CLOSING = {"{": "}", "[": "]"}


class Entry(NamedTuple):
    """One entry: its key in the object, or its number from 0 in the list, and its fields."""

    key: str
    row: Row


def json_entries(path: Path) -> list[Entry]:
    """The entries of a file that holds an object of objects or a list of objects; there must be one.

    Entries are decoded one after the other, so that a fault anywhere is named by file and line.
    """
    text = read_text(path)
    found = list(_Walk(path, text).entries())
    if not found:
        raise EnsueError(f"{path} has no entries; download it again or take it away.")
    return found


def number(row: Row, name: str) -> float:
    """A finite number of a row."""
    return row.score(name, -sys.float_info.max, sys.float_info.max)


def texts(row: Row, name: str) -> tuple[str, ...]:
    """A list of texts of a row, none of them blank."""
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        row.refuse(f"{name!r} is not a list of texts")
    for place, one in enumerate(value, 1):
        if not one.strip():
            row.refuse(f"text {place} of {name!r} is empty")
    return tuple(value)


class _Walk:
    """A place in a file that moves from entry to entry."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text
        self._at, self._line, self._counted = 0, 1, 0

    def entries(self) -> Iterator[Entry]:
        opening = self._peek()
        if opening not in _CLOSING:
            self._refuse("the file is neither a JSON object nor a JSON list")
        self._at += 1
        seen: set[str] = set()
        while self._peek() != _CLOSING[opening]:
            if seen:
                self._take(",")
            key = self._key() if opening == "{" else str(len(seen))
            if key in seen:
                self._refuse(f"the key {key!r} is there twice")
            seen.add(key)
            self._peek()
            where, fields = f"{self._path}, line {self._now()}", self._value()
            if not isinstance(fields, dict):
                raise EnsueError(f"{where}: entry {key!r} is not a JSON object.")
            yield Entry(key, Row(where, fields))
        self._at += 1
        if self._peek():
            self._refuse("something follows the end of the JSON")

    def _key(self) -> str:
        self._peek()
        key = self._value()
        if not isinstance(key, str):
            self._refuse("an entry has no name")
        self._take(":")
        return key

    def _peek(self) -> str:
        """The next character that is not space; nothing at the end of the file."""
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, character: str) -> None:
        if self._peek() != character:
            self._refuse(f"this is not JSON (a {character!r} is missing)")
        self._at += 1

    def _value(self) -> object:
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except json.JSONDecodeError as error:
            self._at = error.pos
            self._refuse(f"this is not JSON ({error.msg})")
        except (RecursionError, ValueError):
            self._refuse("this is not JSON (nested too deeply or too long)")
        return value

    def _now(self) -> int:
        """The line of the place; lines are counted on from where they were counted last."""
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = max(self._counted, self._at)
        return self._line

    def _refuse(self, what: str) -> NoReturn:
        raise EnsueError(f"{self._path}, line {self._now()}: {what}; download the file again.")


def read_text(path: Path) -> str:
    """A file as UTF-8 text; what is not is named by its line."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        return raw.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise EnsueError(
            f"{path}, line {line}: byte {error.start + 1} of the file is not UTF-8; convert the file first."
        ) from None
