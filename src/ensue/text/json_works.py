"""Works as JSON objects: an id, a title and a list of chapters, each a string or a heading with its text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ensue.errors import EnsueError
from ensue.text.chapters import Chapter, NotUsable, Work, make_work, one_line, paragraphs_of, unix_lines
from ensue.text.rows import kind

_HEADINGS = ("head", "heading", "title")
_TEXTS = ("paragraphs", "text", "content", "body")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json_work(data: bytes, place: str, id: str) -> Work:
    """A work from the bytes of one object; `id` stands in where it states none."""
    columns = json_object(data, place)
    if "chapters" not in columns:
        names = ", ".join(map(repr, columns)) or "no column at all"
        raise EnsueError(f"{place} has no 'chapters', only {names}: give a list of chapters.")
    chapters = chapters_of(columns["chapters"], place)
    id = stated_id(columns, place) or id
    return make_work(id, string(columns, ("title",), place), chapters)


def json_object(data: bytes, place: str) -> dict[str, Any]:
    """The object that bytes in UTF-8 hold, with its place in words in every message."""
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise EnsueError(f"{place} is not UTF-8 (byte {error.start}): convert it to UTF-8.") from error
    except json.JSONDecodeError as error:
        raise EnsueError(
            f"{place} is not JSON ({error.msg} at column {error.colno}): repair or remove it."
        ) from error
    except (ValueError, RecursionError) as error:
        raise EnsueError(f"{place} is not JSON that can be read ({error}).") from error
    if not isinstance(value, dict):
        raise EnsueError(f"{place} is not a JSON object but {kind(value)}: give one object for each work.")
    return value


def chapters_of(value: Any, place: str) -> list[Chapter]:
    """The chapters of a list; what is marked as a group of chapters only gives its heading to the next one."""
    if not isinstance(value, list):
        raise EnsueError(f"{place} has {kind(value)} as 'chapters', where a list is expected.")
    if not value:
        raise NotUsable("no text")
    chapters: list[Chapter] = []
    above: list[str] = []
    for number, each in enumerate(value, 1):
        where = f"{place}, chapter {number}"
        if isinstance(each, str):
            chapters.append(Chapter("", paragraphs_of(_clean(each, where))))
            continue
        if not isinstance(each, dict):
            raise EnsueError(f"{where} is {kind(each)}, where a string or an object is expected.")
        columns = {name.lower(): column for name, column in each.items()}
        heading = heading_lines(string(columns, _HEADINGS, where))
        if columns.get("type") == "group":
            above += heading
            continue
        chapters.append(Chapter("\n".join([*above, *heading]), _text(columns, where)))
        above = []
    return chapters


def heading_lines(heading: str) -> list[str]:
    return [line for line in map(one_line, unix_lines(heading).split("\n")) if line]


def stated_id(columns: Mapping[str, Any], place: str) -> str:
    """The id of a work, empty where it states none."""
    value = columns.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return string(columns, ("id",), place)


def string(columns: Mapping[str, Any], names: tuple[str, ...], place: str) -> str:
    """The first string there is under one of some names, empty where there is none."""
    for name in names:
        value = columns.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise EnsueError(f"{place} has {kind(value)} as {name!r}, where a string is expected.")
        return _clean(value.strip(), place)
    return ""


def _text(columns: Mapping[str, Any], place: str) -> str:
    name = next((name for name in _TEXTS if columns.get(name) is not None), None)
    if name is None:
        raise EnsueError(f"{place} has neither 'paragraphs' nor 'text': give one of them.")
    value = columns[name]
    if isinstance(value, str):
        return paragraphs_of(_clean(value, place))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "\n\n".join(filter(None, (one_line(_clean(each, place)) for each in value)))
    raise EnsueError(
        f"{place} has {kind(value)} as {name!r}, where a string or a list of strings is expected."
    )


def _clean(text: str, place: str) -> str:
    """The text, if every character of it is one that text may hold."""
    if "\0" in text:
        raise EnsueError(f"{place} holds a NUL character: take it out.")
    if not text.isascii() and _SURROGATE.search(text):
        raise EnsueError(
            f"{place} holds half a character (a lone surrogate), which no text may: take it out."
        )
    return text
