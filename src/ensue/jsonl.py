"""Read JSON files and JSON lines; every problem is one sentence that names the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError


def read_object(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    try:
        value = json.loads(path.read_bytes().decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise EnsueError(f"{path}, line {error.lineno}: not JSON ({error.msg}).") from error
    except UnicodeDecodeError as error:
        raise EnsueError(f"{path} is not UTF-8 text.") from error
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not isinstance(value, dict):
        raise EnsueError(f"{path} must hold a JSON object.")
    return value


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read the objects of a JSON-lines file with their line numbers; blank lines are passed over."""
    try:
        # Bytes, so that a wrong encoding is reported with its line and no character but \n ends one.
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
                if line.strip():
                    yield number, parse_line(line, f"{path}, line {number}")
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from error


def parse_line(line: bytes | str, place: str) -> dict[str, Any]:
    """Parse one JSON object; `place` names it in messages."""
    try:
        value = json.loads(line.decode("utf-8") if isinstance(line, bytes) else line)
    except json.JSONDecodeError as error:
        raise EnsueError(f"{place}: not JSON ({error.msg} at column {error.colno}).") from error
    except UnicodeDecodeError as error:
        raise EnsueError(f"{place}: not UTF-8 text.") from error
    if not isinstance(value, dict):
        raise EnsueError(f"{place}: not a JSON object.")
    return value
