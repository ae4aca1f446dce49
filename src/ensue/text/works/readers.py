"""Works of fiction as their chapters: found in a file or folder one by one, and read each on its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from ensue.errors import EnsueError, os_errors
from ensue.text.io.rows import printable, read_bytes
from ensue.text.works.ao3 import read_ao3_html, read_ao3_json, read_ao3_text
from ensue.text.works.chapters import Chapter, NotUsable, Work, read_json_work
from ensue.text.works.gutenberg import Headings, read_gutenberg
from ensue.text.works.tei import read_tei

__all__ = ["Chapter", "Headings", "Kind", "NotUsable", "Unread", "Work", "find_works", "read_work"]

Kind = Literal["auto", "gutenberg", "tei", "json", "ao3"]

_TEXTS, _XML = frozenset({".txt", ""}), frozenset({".xml", ".tei"})
_PAGES = frozenset({".html", ".htm", ".xhtml"})
_LINES = frozenset({".jsonl", ".ndjson"})
_JSON = _LINES | {".json"}
_SUFFIXES: dict[str, frozenset[str]] = {
    "auto": _TEXTS | _PAGES | _XML | _JSON,
    "gutenberg": _TEXTS,
    "tei": _XML,
    "json": _JSON,
    "ao3": _TEXTS | _PAGES | _JSON,
}
_NO_WORKS = frozenset({"authors", "changelog", "copying", "index", "licence", "license", "notice", "readme"})
_RATING_COLUMN = re.compile(rb'(?<!\\)"rating"\s*:', re.IGNORECASE)
_RATING_LINE = re.compile(rb"^[ \t]*[*_]*Rating[*_]*:", re.IGNORECASE | re.MULTILINE)
_HEADER_BYTES = 4096
_LONGEST_LINE_PEEKED = 1 << 26


class Unread(NamedTuple):
    """A work that is found but not read: a file, or one line of a JSON Lines file as it stands there."""

    place: str
    kind: Kind
    path: Path
    line: bytes | None = None


def find_works(source: str | Path, kind: Kind = "auto") -> Iterator[Unread]:
    """Find the works of a file, or of a folder and those below it in the order of their names, one held at a time.

    A folder's hidden files, its README and the like, and files whose ending is none of the kind's are passed over.
    `auto` decides by the ending and, where that is not enough, by whether a rating is stated.
    """
    if kind not in get_args(Kind):
        raise EnsueError(f"{kind!r} is not a kind of work: give one of {', '.join(get_args(Kind))}.")
    path = Path(source).expanduser()
    if not str(source) or not os.path.exists(path):
        raise EnsueError(
            f"{source or 'The source of works'} does not exist: give a file or a folder of works."
        )
    if not path.is_dir():
        if kind == "auto" and path.suffix.lower() not in _SUFFIXES["auto"]:
            known = ".txt, .html, .xml, .json or .jsonl"
            raise EnsueError(
                f"{path} is not a kind of file that works are read from: give {known}, or name its kind."
            )
        return _in_file(path, kind)
    return _in_folder(path, kind)


def read_work(unread: Unread, *, headings: Headings = "robust") -> Work:
    """Read a work; raise `NotUsable` with the reason why a sound one is left out.

    `headings` is how chapters are found in plain text: `paper` takes every line that begins with "chapter",
    `robust` the most plausible numbered sequence of headings.
    """
    if headings not in get_args(Headings):
        raise EnsueError(f"Headings are found the 'paper' or the 'robust' way, not {headings!r}.")
    path, place, kind = unread.path, unread.place, unread.kind
    id, data, suffix = printable(path.stem), unread.line, path.suffix.lower()
    if data is None:
        data = read_bytes(path)
    else:
        id = f"{id}:{place.rpartition(' ')[2]}"
    if kind == "tei":
        return read_tei(data, place, id)
    if kind == "gutenberg":
        return read_gutenberg(data, place, id, headings)
    if kind == "json":
        return read_json_work(data, place, id)
    if suffix in _JSON:
        return read_ao3_json(data, place, id)
    return read_ao3_html(data, place, id) if suffix in _PAGES else read_ao3_text(data, place, id)


def _in_folder(folder: Path, kind: Kind) -> Iterator[Unread]:
    empty = True
    for path in _files_below(folder):
        if path.suffix.lower() in _SUFFIXES[kind] and path.stem.lower() not in _NO_WORKS:
            empty = False
            yield from _in_file(path, kind)
    if empty:
        endings = ", ".join(sorted(filter(None, _SUFFIXES[kind])))
        raise EnsueError(
            f"{folder} holds no file that works are read from: give a folder with {endings} files."
        )


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, sorted by name together with its sub-folders; skip hidden ones."""
    with os_errors(folder), os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for name in names:
        path = folder / name
        if path.is_dir():
            yield from _files_below(path)
        elif path.is_file():
            yield path


def _in_file(path: Path, kind: Kind) -> Iterator[Unread]:
    suffix = path.suffix.lower()
    if suffix in _LINES or (suffix == ".json" and _is_lines(path)):
        yield from _in_lines(path, kind)
    else:
        yield Unread(str(path), _kind_of_file(path) if kind == "auto" else kind, path)


def _in_lines(path: Path, kind: Kind) -> Iterator[Unread]:
    empty = True
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                empty = False
                place = f"{path}, line {number}"
                if b"\0" in line:
                    raise EnsueError(
                        f"{place} holds a NUL byte, so it is UTF-16 or no text: convert it to UTF-8."
                    )
                yield Unread(place, _kind_of_object(line) if kind == "auto" else kind, path, line)
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from error
    if empty:
        raise EnsueError(f"{path} is empty: give a file with one work a line.")


def _kind_of_object(data: bytes) -> Kind:
    return "ao3" if _RATING_COLUMN.search(data) else "json"


def _kind_of_file(path: Path) -> Kind:
    suffix = path.suffix.lower()
    if suffix in _XML:
        return "tei"
    if suffix in _PAGES:
        return "ao3"
    if suffix == ".json":
        return _kind_of_object(read_bytes(path))
    return "ao3" if _RATING_LINE.search(read_bytes(path, _HEADER_BYTES)) else "gutenberg"


def _is_lines(path: Path) -> bool:
    """Return whether a .json file holds one object a line and not one over many lines."""
    head = read_bytes(path, _LONGEST_LINE_PEEKED)
    first, _, rest = head.strip().partition(b"\n")
    return first.rstrip().endswith(b"}") and rest.lstrip().startswith(b"{")
