"""One document as its source states it, and the checks on the columns it is made from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ensue.errors import EnsueError

SENTENCES = "sentences"
TEXT_COLUMNS = ("text", "document", "article", "documents", "story")

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Row:
    """A document before its text is split; `place` says where it stands, for messages.

    A row with neither text nor sentences has nothing to read.
    """

    place: str
    id: str
    default_domain: str
    domain: str | None = None
    text: str | None = None
    sentences: tuple[str, ...] | None = None

    @property
    def is_empty(self) -> bool:
        return self.text is None and self.sentences is None


def row_from_columns(
    columns: Mapping[str, Any], *, place: str, id: str, domain: str, text_column: str | None
) -> Row:
    """A row from the columns of a table: its sentences if it has them, or else its text.

    `id` and `domain` stand in where the columns state none.
    """
    text, sentences = None, None
    column = _content_column(columns, place, text_column)
    value = columns[column]
    if isinstance(value, list) and column in (SENTENCES, text_column):
        sentences = tuple(_sentence(each, number, place) for number, each in enumerate(value, 1)) or None
    elif isinstance(value, str) and column != SENTENCES:
        text = None if is_blank(value) else _clean(value, place)
    elif value is not None:
        wanted = "a list of strings" if column == SENTENCES else "a string"
        raise EnsueError(f"{place} has {kind(value)} as {column!r}, where {wanted} is expected.")
    return Row(place, _id(columns, place) or id, domain, _domain(columns, place), text, sentences)


def is_blank(text: str) -> bool:
    return not text or text.isspace()


def kind(value: Any) -> str:
    """What a JSON value is, in words."""
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", type(None): "null"}
    return kinds.get(type(value), "an object")


def _content_column(columns: Mapping[str, Any], place: str, text_column: str | None) -> str:
    """The column to read: the one asked for, or the first of the usual ones, null only if all are."""
    usual = (text_column,) if text_column else (SENTENCES, *TEXT_COLUMNS)
    present = [name for name in usual if name in columns]
    if not present:
        names = ", ".join(map(repr, columns)) or "no column at all"
        raise EnsueError(f"{place} has no {text_column or 'text or sentences'}, only {names}.")
    return next((name for name in present if columns[name] is not None), present[0])


def _sentence(value: Any, number: int, place: str) -> str:
    if not isinstance(value, str):
        raise EnsueError(f"{place} has {kind(value)} as sentence {number}, where a string is expected.")
    if is_blank(value):
        raise EnsueError(f"{place} has an empty sentence (number {number}).")
    return _clean(value, place)


def _id(columns: Mapping[str, Any], place: str) -> str | None:
    value = columns.get("id")
    if value is None or (isinstance(value, str) and value):
        return _clean(value, place) if value else None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise EnsueError(f"{place} has {kind(value)} as its id, where a name or a whole number is expected.")


def _domain(columns: Mapping[str, Any], place: str) -> str | None:
    value = columns.get("domain")
    if value is None or (isinstance(value, str) and value):
        return _clean(value, place) if value else None
    raise EnsueError(f"{place} has {kind(value)} as its domain, where a name is expected.")


def _clean(value: str, place: str) -> str:
    """The string, if every character of it is one that text may hold."""
    if "\0" in value:
        raise EnsueError(f"{place} holds a NUL character.")
    if not value.isascii() and (found := _SURROGATE.search(value)):
        raise EnsueError(f"{place} holds half a character (\\u{ord(found.group()):x}), which no text may.")
    return value
