"""Readers of raw corpora on disk: JSON Lines files, text files and folders of either, as streams of rows."""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.text.rows import Row, is_blank, kind, row_from_columns

JSON_LINES = frozenset({".jsonl", ".ndjson", ".json"})
TEXT_FILES = frozenset({".txt", ""})

# In a folder, a .json file beside the data is most often a description of it.
_JSON_LINES_IN_FOLDERS = JSON_LINES - {".json"}
_NO_DOCUMENTS = frozenset(
    {"AUTHORS", "CHANGELOG", "CITATION", "CONTRIBUTING", "COPYING", "LICENCE", "LICENSE", "MAKEFILE"}
    | {"NOTICE", "README", "SHA256SUMS"}
)
_GENERIC_STEMS = frozenset({"data", "dev", "documents", "test", "train", "val", "valid", "validation"})
_PENN_START = ".START"


def read_json_lines(
    path: Path, *, label: str | None = None, text_column: str | None = None, encoding: str = "utf-8"
) -> Iterator[Row]:
    """One row for each line of a JSON Lines file; blank lines are passed over."""
    label = label or _printable(path.stem)
    domain = path.resolve().parent.name if path.stem.lower() in _GENERIC_STEMS else path.stem
    for place, columns in json_objects(path, encoding):
        row = row_from_columns(
            columns,
            place=place,
            id=f"{label}:{place.rpartition(' ')[2]}",
            domain=_printable(domain or path.stem),
            text_column=text_column,
        )
        if row.is_empty:
            raise EnsueError(f"{place} is a document with no text.")
        yield row


def json_objects(path: Path, encoding: str = "utf-8") -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON Lines file, each with its place in words; blank lines are passed over."""
    return objects_in(_lines(path, encoding), str(path))


def objects_in(lines: Iterable[tuple[int, str]], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of numbered lines, each with its place in words; blank lines are passed over."""
    empty = True
    for number, line in lines:
        if is_blank(line):
            continue
        empty = False
        place = f"{name}, line {number}"
        yield place, _json_object(line, place)
    if empty:
        raise EnsueError(f"{name} is empty.")


def read_text_file(
    path: Path, *, label: str | None = None, domain: str | None = None, encoding: str = "utf-8"
) -> Row:
    """A text file as one row, without the `.START` lines of the Penn Treebank's raw files.

    The line breaks a file ends with are the file's, not the text's.
    """
    lines = [line for _, line in _lines(path, encoding)]
    if not lines:
        raise EnsueError(f"{path} is empty.")
    if lines[0].strip() == _PENN_START:
        # Some of those files hold two articles, so a mark further on leaves a blank line.
        lines = ["\n" if line.strip() == _PENN_START else line for line in lines]
    text = "".join(lines).rstrip("\n")
    if is_blank(text):
        raise EnsueError(f"{path} is a document with no text.")
    domain = domain or path.resolve().parent.name or path.stem
    return Row(str(path), label or _printable(path.name), _printable(domain), text=text)


def read_folder(folder: Path, *, text_column: str | None = None, encoding: str = "utf-8") -> Iterator[Row]:
    """The documents in a folder and its sub-folders, in the order of their relative paths."""
    paths = [path for path in _relative_paths(folder) if path.stem.upper() not in _NO_DOCUMENTS]
    texts = [path for path in paths if path.suffix.lower() in TEXT_FILES]
    tables = [path for path in paths if path.suffix.lower() in _JSON_LINES_IN_FOLDERS]
    if texts and tables:
        both = f"text ({texts[0]}) and JSON Lines files ({tables[0]})"
        raise EnsueError(f"{folder} holds both {both}, so name the file or folder to read.")
    if not texts and not tables:
        raise EnsueError(f"{folder} holds no .txt, extensionless or .jsonl file to read documents from.")
    for path in texts:
        label = _printable(path.as_posix())
        yield read_text_file(folder / path, label=label, domain=folder.resolve().name, encoding=encoding)
    for path in tables:
        label = _printable(path.with_suffix("").as_posix())
        yield from read_json_lines(folder / path, label=label, text_column=text_column, encoding=encoding)


def _relative_paths(folder: Path) -> list[Path]:
    """The files below a folder, hidden ones left out."""

    def unreadable(error: OSError) -> None:
        raise EnsueError(f"{error.filename} could not be read: {error.strerror}.") from error

    found: list[Path] = []
    for where, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(where, name) for name in names if not name.startswith(".")]
    relative = (path.relative_to(folder) for path in found if path.is_file())
    return sorted(relative, key=lambda path: path.as_posix())


def _printable(name: str) -> str:
    """A file name as text that can be written as UTF-8 again, whatever bytes it is made of."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file, one held at a time."""
    try:
        # A byte-order mark at the head of UTF-8 says nothing and is dropped.
        decoder = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with path.open(encoding=decoder) as file:
            for number, line in enumerate(file, 1):
                if "\0" in line:
                    raise EnsueError(_nul_byte(path, number))
                yield number, line
    except LookupError as error:
        raise EnsueError(f"{encoding} is not a text encoding: name one such as utf-8 or latin-1.") from error
    except UnicodeError as error:
        raise EnsueError(_wrong_encoding(path, encoding)) from error
    except OSError as error:
        raise EnsueError(f"{path} could not be read: {error.strerror or error}.") from error


def _nul_byte(path: Path, number: int) -> str:
    return f"{path}, line {number} holds a NUL byte, so it is UTF-16 or no text."


def _wrong_encoding(path: Path, encoding: str) -> str:
    """Where a file stops being what its encoding says, and what to do about it."""
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


def _json_object(line: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        hint = ": write one object a line" if line.strip() in "[{" else ""
        raise EnsueError(f"{place} is not JSON ({error.msg} at column {error.colno}){hint}.") from error
    except (ValueError, RecursionError) as error:
        raise EnsueError(f"{place} is not JSON that can be read ({error}).") from error
    if not isinstance(value, dict):
        raise EnsueError(f"{place} is not a JSON object but {kind(value)}.")
    return value
