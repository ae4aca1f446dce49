"""Read JSON files, JSON lines, TOML files and lines of text; every problem is one sentence that names the file."""

from __future__ import annotations

import codecs
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError, os_errors

JSON_LINES = frozenset({".jsonl", ".ndjson", ".json"})


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    with os_errors(path):
        data = path.read_bytes()
    return parse_line(data, str(path))


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the objects of a JSON-lines file with their line numbers, one held at a time; skip blank lines."""
    for number, line in text_lines(path, encoding):
        if line and not line.isspace():
            yield number, parse_line(line, f"{path}, line {number}")


def parse_line(line: bytes | str, place: str) -> dict[str, Any]:
    """Parse one JSON object; `place` names it in messages."""
    try:
        text = line.decode("utf-8-sig") if isinstance(line, bytes) else line
        # Without the line break at the end, which would count as a second line.
        value = json.loads(text.rstrip())
    except UnicodeDecodeError as error:
        raise EnsueError(f"{place} is not UTF-8 (byte {error.start}): convert it to UTF-8.") from error
    except json.JSONDecodeError as error:
        where, hint = (f"{place}, line {error.lineno}" if error.lineno > 1 else place), ""
        if error.doc.strip() in ("[", "{"):
            hint = ": write one object a line"
        elif error.lineno > 1 and error.msg == "Extra data":
            if place.endswith(".jsonl"):
                raise EnsueError(f"{place} holds an object a line, where one object is expected.") from error
            hint = ": name the file .jsonl if it holds one object a line"
        raise EnsueError(f"{where} is not JSON ({error.msg} at column {error.colno}){hint}.") from error
    except (ValueError, RecursionError) as error:
        raise EnsueError(f"{place} is not JSON that can be read ({error}).") from error
    if not isinstance(value, dict):
        raise EnsueError(f"{place} is not a JSON object but {in_words(value)}.")
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    with os_errors(path):
        data = path.read_bytes()
    return parse_toml(data, str(path))


def parse_toml(data: bytes | str, place: str) -> dict[str, Any]:
    """Parse TOML; `place` names it in messages."""
    try:
        return tomllib.loads(data.decode("utf-8") if isinstance(data, bytes) else data)
    except ValueError as error:  # no TOML, no UTF-8, a number of too many digits
        raise EnsueError(f"{place} is not TOML that can be read ({error}).") from None
    except RecursionError:
        raise EnsueError(f"{place} is not TOML that can be read: it is nested too deeply.") from None


def in_words(value: Any) -> str:
    """Name the type of a JSON value in a message.

    >>> in_words([1]), in_words("")
    ('a list', 'an empty string')
    """
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", type(None): "null"}
    return kinds.get(type(value), "an object")


def text_lines(path: Path, encoding: str = "utf-8", newline: str | None = None) -> Iterator[tuple[int, str]]:
    """Read the numbered lines of a text file, one held at a time; `newline` is that of `open`."""
    try:
        # A byte-order mark at the head of UTF-8 says nothing and is dropped.
        decoder = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with path.open(encoding=decoder, newline=newline) as file:
            for number, line in enumerate(file, 1):
                if "\0" in line:
                    raise EnsueError(_nul_byte(path, number))
                yield number, line
    except LookupError as error:
        raise EnsueError(f"{encoding} is not a text encoding: name one such as utf-8 or latin-1.") from error
    except UnicodeError as error:
        raise EnsueError(_wrong_encoding(path, encoding)) from error
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from error


def _nul_byte(path: Path, number: int) -> str:
    return f"{path}, line {number} holds a NUL byte, so it is UTF-16 or no text."


def _wrong_encoding(path: Path, encoding: str) -> str:
    """Say where a file stops being what its encoding says, and what to do about it."""
    offset, where = 0, ""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return f"{path} is UTF-16 (line 1, byte 0 is its byte-order mark): convert it to UTF-8."
            if b"\0" in line and not encoding.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")):
                return _nul_byte(path, number)
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                where = f" (line {number}, byte {offset + error.start})"
                break
            offset += len(line)
    return f"{path} is not {encoding.upper()}{where}: convert it to UTF-8, or name its encoding."
