"""Texts to score or to profile, from a file, a folder, a hub data set or standard input, one held at a time."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES, parse_line
from ensue.models.request import Request
from ensue.shelf import Shelf
from ensue.text.documents import read_rows
from ensue.text.io.rows import SourceRow, checked, json_objects, path_of, row_from_columns
from ensue.text.sentences import language_code

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Text:
    """A text to score, with the name its score goes by, and its sentences where its source states them, or else the
    language it is split in."""

    id: str
    request: Request
    sentences: tuple[str, ...] = ()
    language: str = "en"


@dataclass(frozen=True)
class Texts:
    """The texts of a source, read anew whenever they are gone through; `count` is None where nobody has counted."""

    read: Callable[[], Iterator[Text]]
    count: int | None = None

    def __iter__(self) -> Iterator[Text]:
        return self.read()


def read_texts(source: str, settings: Mapping[str, Any], *, limit: int | None) -> Shelf[Text]:
    """Read the texts of a file: JSON lines with `text`, `sentences` or `context` and `continuation`, or plain text.

    A text is scored as it stands. `-` is standard input: JSON lines where it begins with an object, else one text.
    All are read before any is worked on, and many lie on disk.
    """
    return Shelf(open_texts(source, settings, limit=limit))


def whole_texts(source: str, settings: Mapping[str, Any], *, limit: int | None) -> Texts:
    """Return the texts of a source, all of them looked at before any is worked on, so that a bad one costs no time.

    A hub data set is looked at as it comes. What has a context is no whole text and is refused.
    """
    texts = open_texts(source, settings, limit=limit)
    language = language_code(settings["language"])

    def whole() -> Iterator[Text]:
        for one in texts:
            if not one.request.continuation.strip():
                raise EnsueError(f"{one.id} is a document with no text.")
            if one.request.context:
                raise EnsueError(
                    f"{one.id} is a context and a continuation; a profile needs whole texts, so leave such rows out "
                    f"or score them without --profile."
                )
            yield replace(one, language=language)

    hub = source != STANDARD_INPUT and path_of(source, "texts are") is None
    return Texts(whole, None if hub else sum(1 for _ in whole()))


def given_texts(texts: Iterable[str | Sequence[str]], language: str = "en") -> list[Text]:
    """Return texts that are given as they are, or as lists of their sentences, each named by its place."""
    if isinstance(texts, str):
        raise EnsueError("The texts are one text: put it in a list.")
    found = []
    for place, one in enumerate(texts):
        listed = isinstance(one, Sequence) and not isinstance(one, (str, bytes))
        columns = {"sentences": list(one)} if listed else {"text": one}
        row = row_from_columns(columns, place=f"Text {place}", id=str(place), domain="", text_column=None)
        if row.is_empty:
            raise EnsueError(f"Text {place} is empty.")
        found.append(replace(_text(row, " "), language=language_code(language)))
    return found


def open_texts(source: str, settings: Mapping[str, Any], *, limit: int | None) -> Texts:
    """Return the texts of a source, as `read_texts` reads them."""
    encoding, column, joiner = settings["encoding"], settings["text_column"], settings["joiner"]
    if source == STANDARD_INPUT:
        said = _standard_input(encoding)
        if not said.lstrip().startswith("{"):
            return Texts(lambda: iter([Text(STANDARD_INPUT, Request(said.rstrip("\n")))]), 1)
        read = partial(_rows, lambda: _said_objects(said), STANDARD_INPUT, column, joiner)
    elif (path := Path(source)).suffix.lower() in JSON_LINES and path.is_file():
        read = partial(_rows, lambda: json_objects(path, encoding), path.stem, column, joiner)
    else:
        read = partial(_documents, source, column, encoding, joiner)
    return Texts(lambda: islice(read(), limit))


def _documents(source: str, column: str | None, encoding: str, joiner: str) -> Iterator[Text]:
    empty = True
    for row in read_rows(source, text_column=column, encoding=encoding):
        if not row.is_empty:
            empty = False
            yield _text(row, joiner)
    if empty:
        raise EnsueError(f"{source} has no document with text.")


def _said_objects(said: str) -> Iterator[tuple[str, dict[str, Any]]]:
    # Not splitlines, which also divides at separators that stand in JSON strings as they are.
    for number, line in enumerate(said.split("\n"), 1):
        if line.strip():
            place = f"Standard input, line {number}"
            yield place, parse_line(line, place)


def _standard_input(encoding: str) -> str:
    try:
        said = sys.stdin.buffer.read().decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise EnsueError(
            f"Standard input is not {encoding.upper()} text ({error}); name its encoding with --set encoding=…"
        ) from None
    if not said.strip():
        raise EnsueError("Standard input is empty: send it a text or JSON lines.")
    # Line breaks as they are read from a file.
    return checked(said, "Standard input").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _rows(
    objects: Callable[[], Iterable[tuple[str, dict[str, Any]]]],
    label: str,
    column: str | None,
    joiner: str,
) -> Iterator[Text]:
    """Yield each row by what it holds: a whole text, its sentences, or a continuation with its context."""
    seen: dict[str, str] = {}
    for place, row in objects():
        number = place.rpartition(" ")[2]
        if "continuation" in row:
            yield _pair(row, place, number)
            continue
        found = row_from_columns(row, place=place, id=f"{label}:{number}", domain="", text_column=column)
        if found.is_empty:
            raise EnsueError(f"{place} is a document with no text.")
        if found.id in seen:
            raise EnsueError(f"{place} has the id {found.id!r}, which {seen[found.id]} has already.")
        seen[found.id] = place
        yield _text(found, joiner)


def _text(row: SourceRow, joiner: str) -> Text:
    if row.text is not None:
        return Text(row.id, Request(row.text))
    sentences = row.sentences or ()
    return Text(row.id, Request(joiner.join(sentences)), sentences)


def _pair(row: Mapping[str, Any], place: str, number: str) -> Text:
    context, continuation = row.get("context", ""), row.get("continuation")
    if not isinstance(context, str) or not isinstance(continuation, str) or not continuation:
        raise EnsueError(f"{place} needs a `continuation` (and may have a `context`), both text.")
    name = row.get("id", number)
    name = checked(name if isinstance(name, str) else json.dumps(name), place)
    return Text(name, Request(checked(continuation, place), checked(context, place)))
