"""Works as their chapters, what all their readers share, and works given as JSON objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ensue.errors import EnsueError
from ensue.jsonl import in_words, parse_line
from ensue.text.io.rows import checked
from ensue.text.sentences import one_line

_LONGEST_WRAPPED = 120
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_HEADINGS = ("head", "heading", "title")
_TEXTS = ("paragraphs", "text", "content", "body")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter.

    `heading` is the heading as it stands, its lines divided by line breaks ("CHAPTER III.\\nThe Letter"), empty
    where there is none. `text` is the body: one line a paragraph, a blank line between two.
    """

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """A work with its chapters in order; `empty_chapters` had a heading and no text, and were left out."""

    id: str
    title: str
    chapters: tuple[Chapter, ...]
    empty_chapters: int = 0


class NotUsable(Exception):
    """A work is sound but left out; `reason` is one of few, so that works can be counted by it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def joined_paragraphs(text: str) -> str:
    """Join hard line breaks: one line a paragraph, a blank line between two.

    >>> joined_paragraphs("Rain fell\\non the roof.\\n\\n\\n  She slept.")
    'Rain fell on the roof.\\n\\nShe slept.'
    """
    return "\n\n".join(filter(None, map(one_line, _BLANK_LINES.split(unix_lines(text)))))


def paragraphs_of(text: str) -> str:
    """Join paragraphs as `joined_paragraphs`; where there is no blank line and lines are long, each is a paragraph.

    >>> paragraphs_of("Rain fell\\non the roof.")
    'Rain fell on the roof.'
    """
    text = unix_lines(text).strip()
    lines = text.split("\n")
    if len(lines) > 1 and not _BLANK_LINES.search(text) and max(map(len, lines)) > _LONGEST_WRAPPED:
        text = "\n\n".join(lines)
    return joined_paragraphs(text)


def unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded(data: bytes, place: str) -> str:
    """Decode bytes as UTF-8, or as Latin-1 where they are not UTF-8, as older Gutenberg files are.

    A byte-order mark is dropped.
    """
    if b"\0" in data:
        raise EnsueError(f"{place} holds a NUL byte, so it is not text in UTF-8: convert it or leave it out.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def make_work(id: str, title: str, chapters: list[Chapter]) -> Work:
    """Make a work of the chapters that have text; raise `NotUsable` where none has any."""
    filled = tuple(chapter for chapter in chapters if chapter.text)
    if not filled:
        raise NotUsable("no text")
    return Work(id, title or id, filled, len(chapters) - len(filled))


def read_json_work(data: bytes, place: str, id: str) -> Work:
    """Read a work from the bytes of one object; `id` stands in where it states none."""
    columns = parse_line(data, place)
    if "chapters" not in columns:
        names = ", ".join(map(repr, columns)) or "no column at all"
        raise EnsueError(f"{place} has no 'chapters', only {names}: give a list of chapters.")
    chapters = chapters_of(columns["chapters"], place)
    id = stated_id(columns, place) or id
    return make_work(id, string(columns, ("title",), place), chapters)


def chapters_of(value: Any, place: str) -> list[Chapter]:
    """Read a list of chapters; what is marked as a group of chapters only gives its heading to the next one."""
    if not isinstance(value, list):
        raise EnsueError(f"{place} has {in_words(value)} as 'chapters', where a list is expected.")
    if not value:
        raise NotUsable("no text")
    chapters: list[Chapter] = []
    above: list[str] = []
    for number, each in enumerate(value, 1):
        where = f"{place}, chapter {number}"
        if isinstance(each, str):
            chapters.append(Chapter("", paragraphs_of(checked(each, where))))
            continue
        if not isinstance(each, dict):
            raise EnsueError(f"{where} is {in_words(each)}, where a string or an object is expected.")
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
    """Return the id of a work, empty where it states none."""
    value = columns.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return string(columns, ("id",), place)


def string(columns: Mapping[str, Any], names: tuple[str, ...], place: str) -> str:
    """Return the first string under one of some names, empty where there is none."""
    for name in names:
        value = columns.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            raise EnsueError(f"{place} has {in_words(value)} as {name!r}, where a string is expected.")
        return checked(value.strip(), place)
    return ""


def _text(columns: Mapping[str, Any], place: str) -> str:
    name = next((name for name in _TEXTS if columns.get(name) is not None), None)
    if name is None:
        raise EnsueError(f"{place} has neither 'paragraphs' nor 'text': give one of them.")
    value = columns[name]
    if isinstance(value, str):
        return paragraphs_of(checked(value, place))
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "\n\n".join(filter(None, (one_line(checked(each, place)) for each in value)))
    raise EnsueError(
        f"{place} has {in_words(value)} as {name!r}, where a string or a list of strings is expected."
    )
