"""Papers with an abstract and sections, from JSON Lines or from PeerRead's file a paper."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.discoeval.builders.common import files_below
from ensue.errors import EnsueError
from ensue.jsonl import in_words
from ensue.text.io.rows import json_objects

_ABSTRACT = re.compile(r"[\W\d]*abstract\b", re.IGNORECASE)


class Section(NamedTuple):
    """A section of a paper; a body that is not divided is one without a heading."""

    heading: str
    text: str


class Paper(NamedTuple):
    """A paper; its abstract is empty where it has none."""

    id: str
    place: str
    abstract: str
    sections: tuple[Section, ...]


def read_papers(source: str, encoding: str) -> Iterator[Paper]:
    """The papers of a file or folder: .jsonl has one a line, a .json is one paper as PeerRead has them.

    A paper is an object with `abstract` (or `abstractText`, or a section of that heading) and `sections`, a
    list of objects with `heading` and `text`, or else `body`, a text; PeerRead's stand in `metadata`.
    """
    path = Path(source).expanduser()
    if not source or not os.path.exists(path):
        raise EnsueError(
            f"{source or 'The source of papers'} does not exist: give a file or folder of papers."
        )
    files = files_below(path, ".jsonl", ".ndjson", ".json") if path.is_dir() else [path]
    if not files:
        raise EnsueError(f"{source} holds no .jsonl or .json file to read papers from.")
    for file in files:
        label = file.relative_to(path).as_posix() if path.is_dir() else file.name
        for place, name, columns in _objects(file, label, encoding):
            yield _paper(columns, place, name)


def _objects(file: Path, label: str, encoding: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    if file.suffix.lower() in (".jsonl", ".ndjson"):
        for place, columns in json_objects(file, encoding):
            yield place, f"{label}:{place.rpartition(' ')[2]}", columns
        return
    try:
        value = json.loads(file.read_text(encoding))
    except OSError as error:
        raise EnsueError(f"{file} could not be read: {error.strerror or error}.") from error
    except UnicodeError as error:
        raise EnsueError(f"{file} is not {encoding.upper()}: convert it, or name its --encoding.") from error
    except json.JSONDecodeError as error:
        raise EnsueError(f"{file}, line {error.lineno} is not JSON ({error.msg}).") from error
    except (LookupError, ValueError, RecursionError) as error:
        raise EnsueError(f"{file} is not JSON that can be read ({error}).") from error
    if not isinstance(value, dict):
        raise EnsueError(f"{file} is not a JSON object but {in_words(value)}; name lines of objects .jsonl.")
    yield str(file), label, value


def _paper(columns: Mapping[str, Any], place: str, label: str) -> Paper:
    metadata = columns.get("metadata")
    content = metadata if isinstance(metadata, dict) else columns
    name = columns.get("id")
    if name is not None and not (isinstance(name, str | int) and str(name)):
        raise EnsueError(
            f"{place} has {in_words(name)} as its id, where a name or a whole number is expected."
        )
    abstract = _text(content, "abstract", place) or _text(content, "abstractText", place)
    sections = list(_sections(content, place))
    if not abstract:
        abstract = next((section.text for section in sections if _ABSTRACT.match(section.heading)), "")
    sections = [section for section in sections if not _ABSTRACT.match(section.heading)]
    return Paper(label if name is None else str(name), place, abstract, tuple(sections))


def _sections(content: Mapping[str, Any], place: str) -> Iterator[Section]:
    value = content.get("sections")
    if value is None:
        if body := _text(content, "body", place):
            yield Section("", body)
        return
    if not isinstance(value, list):
        raise EnsueError(f"{place} has {in_words(value)} as 'sections', where a list is expected.")
    for number, each in enumerate(value, 1):
        if not isinstance(each, dict):
            raise EnsueError(
                f"{place} has {in_words(each)} as section {number}, where an object is expected."
            )
        where = f"{place}, section {number}"
        yield Section(_text(each, "heading", where), _text(each, "text", where))


def _text(content: Mapping[str, Any], name: str, place: str) -> str:
    value = content.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EnsueError(f"{place} has {in_words(value)} as {name!r}, where a string is expected.")
    # Half of a surrogate pair has no UTF-8.
    return value.encode("utf-8", "replace").decode("utf-8").strip()
