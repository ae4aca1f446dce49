"""What may stand in a project.toml: the keys of the file, of its panels and of its fields, and what each holds.

What a form itself must be like, such as a scale whose ends are in order, is in `form.py`; here are words for what
would not get as far: another type of value, a key that is missing, and one that means nothing, as misspelt ones do.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.people.checking import in_words, is_number
from ensue.benchmarks.people.form import TYPES

COLUMN = re.compile(r"\{(\w+)\}")


class Held(NamedTuple):
    """What a key holds, in words, and whether a value is that."""

    words: str
    fits: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    # A column may hold a number, which is shown as it is.
    return isinstance(value, str) or is_number(value)


def _is_one(value: Any) -> bool:
    return not isinstance(value, list | dict)


def _all(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(fits(one) for one in value)


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_mark(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(end) is int for end in value)


_WORDS = Held("a text", lambda value: isinstance(value, str))
_TEXT = Held("a text", _is_text)
_SETTING = Held("one value or a list of them", lambda value: _is_one(value) or _all(_is_one)(value))
_YES_NO = Held("true or false", lambda value: isinstance(value, bool))
_TABLE = Held("a table", _is_table)
_TABLES = Held("a list of tables", _all(_is_table))
_ANY = Held("anything", lambda value: True)  # form.py says what is wrong with it

Keys = Mapping[str, Held]
_FILE: Keys = {
    "title": _WORDS,
    "instructions": _WORDS,
    "data": _WORDS,
    "settings": _TABLE,  # each of them is looked at by itself
    "panels": _TABLES,
    "fields": _TABLES,
    "minimum_seconds": Held("a number from 0 to 3600", lambda value: is_number(value) and 0 <= value <= 3600),
}
_PANEL: Keys = {
    "id": _TEXT,
    "title": _TEXT,
    "text": _TEXT,
    "sentences": Held("a list of texts", _all(_is_text)),
    "direction": Held("auto, ltr or rtl", lambda value: value in ("auto", "ltr", "rtl")),
    "marks": Held("a list of pairs of whole numbers", _all(_is_mark)),
}
_FIELD: Keys = {
    "id": _TEXT,
    "type": _WORDS,
    "label": _TEXT,
    "help": _TEXT,
    "required": _ANY,
    "when": _TABLE,
}
# What a type of field may have besides what it must have (form.TYPES).
_MORE: Mapping[str, Sequence[str]] = {
    "choices": ("least",),
    "scale": ("step", "labels"),
    "text": ("least_words", "most_words", "own_words"),
    "spans": ("least",),
    "preference": ("tie", "random"),
    "sentences": ("reason",),
}
_OF_TYPES: Keys = {
    **dict.fromkeys(("panel", "left", "right", "sentence"), _TEXT),
    "reason": Held("required or optional", lambda value: value in ("required", "optional")),
    **dict.fromkeys(("tie", "random"), _YES_NO),
}
# The keys of tables within a field.
_WITHIN: Mapping[str, Sequence[str]] = {
    "options": ("value", "label"),
    "entries": ("id", "text"),
    "when": ("field", "equals"),
    "own_words": ("panel", "longest"),
}


def file_problems(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a project.toml; what a column is to be put in for is not looked at."""
    yield from _problems("", said, _FILE, ("title", "data"))
    if _is_table(given := said.get("settings", {})):
        yield from _problems("the table 'settings'", given, dict.fromkeys(given, _SETTING), ())
    for part in ("panels", "fields"):
        if _TABLES.fits(said.get(part, [])):
            yield from part_problems(part, said.get(part, []))


def part_problems(part: str, tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with `panels` or `fields`, a sentence without its end each."""
    for number, one in enumerate(tables, 1):
        name = f"the {part[:-1]} {one['id']!r}" if _is_text(one.get("id")) else f"{part[:-1]} {number}"
        if part == "panels":
            body = "sentences" if "sentences" in one else "text"
            yield from _problems(name, one, _PANEL, ("id", body))
            continue
        type = str(one.get("type"))
        own = (*TYPES.get(type, ()), *_MORE.get(type, ()))
        keys = {**_FIELD, **{key: _OF_TYPES.get(key, _ANY) for key in own}}
        if type not in TYPES:
            keys |= dict.fromkeys(one, _ANY)  # which is another fault, of which form.py tells
        yield from _problems(name, one, keys, ("id", "type", "label"))
        for key, known in _WITHIN.items():
            held = one.get(key)
            for table in held if isinstance(held, list) else [held]:
                if isinstance(table, dict):
                    yield from _problems(f"{name}, {key}", table, dict.fromkeys(known, _ANY), ())


def _problems(name: str, table: Mapping[str, Any], known: Keys, needed: Sequence[str]) -> Iterator[str]:
    has = f"{name} has" if name else "it has"
    for key, value in table.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there is {', '.join(known)}"
            yield f"{has} the key {key!r}, which means nothing; {hint}"
        # The file itself has no columns.
        elif not (name and isinstance(value, str) and COLUMN.search(value)) and not known[key].fits(value):
            yield f"{has} {key} = {in_words(value)}, where {known[key].words} is expected"
    for key in needed:
        if key not in table:
            yield f"{has} no {key!r}, {known[key].words}"
