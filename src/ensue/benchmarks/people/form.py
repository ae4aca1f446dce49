"""The one form that every kind of annotation compiles its items to: panels to read and fields to answer.

A browser draws it, a server checks answers against it, an export holds what was given. Values by type of field:

| type | its own keys | value |
|---|---|---|
| `choice` | `options` (`value`, `label`) | a value |
| `choices` | `options`, `least` | a list of values |
| `scale` | `least`, `most`, `step`, `labels` (words by number) | a number |
| `text` | `least_words`, `most_words`; `own_words` (`panel`, `longest`: words in a row that may be its) | a string |
| `spans` | `panel`, `labels`, `least` | a list of `{"start", "end", "label", "note"}` in characters of the panel |
| `order` | `entries` (`id`, `text`) | every id, in the order chosen |
| `place` | `panel`, `sentence` | before which of the panel's sentences, 0 to as many as there are |
| `rank` | `entries` | the place of each id from 1 on; ties are allowed |
| `preference` | `left`, `right` (panels), `tie` | `left`, `right` or `tie` |
| `sentences` | `panel`, `options`, `reason` (`required`) | for each sentence of the panel `{"value", "reason"}` |
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ensue.errors import EnsueError

Values = Mapping[str, Any]
# The types of fields, and the keys that each must have.
TYPES: Mapping[str, tuple[str, ...]] = {
    "choice": ("options",),
    "choices": ("options",),
    "scale": ("least", "most"),
    "text": (),
    "spans": ("panel", "labels"),
    "order": ("entries",),
    "place": ("panel", "sentence"),
    "rank": ("entries",),
    "preference": ("left", "right"),
    "sentences": ("panel", "options"),
}

# What an entry of a field's list is known by, and what is read of it.
_KNOWN_BY = {"options": ("value", "label"), "entries": ("id", "text")}
# Types of fields that are about the sentences of their panel, which must have some.
_OF_SENTENCES = ("place", "sentences")
_NOTHING: Any = object()
_COUNTED = 2**53  # the largest whole number that a browser counts to
_LARGEST = 1e300  # what is larger may be no float any more once it is counted with


@dataclass(frozen=True)
class Panel:
    """Something to read: one text, or sentences. `marks` are pairs of characters of the text that stand out."""

    id: str
    title: str = ""
    text: str | None = None
    sentences: tuple[str, ...] | None = None
    direction: str = "auto"
    marks: tuple[tuple[int, int], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the panel as JSON has it."""
        body: dict[str, Any] = (
            {"text": self.text} if self.sentences is None else {"sentences": list(self.sentences)}
        )
        marks = {"marks": [list(one) for one in self.marks]} if self.marks else {}
        return {"id": self.id, "title": self.title, "direction": self.direction, **body, **marks}

    @property
    def whole(self) -> str:
        """The text; sentences are joined by one space."""
        return self.text if self.text is not None else " ".join(self.sentences or ())


@dataclass(frozen=True)
class Field:
    """Something to answer; `more` are the keys of its type. `when` shows it only where another has a value."""

    id: str
    type: str
    label: str
    more: Mapping[str, Any] = field(default_factory=dict)
    help: str = ""
    required: bool = True
    when: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the field as JSON has it, the keys of its type beside the others."""
        when = None if self.when is None else dict(self.when)
        common = {"id": self.id, "type": self.type, "label": self.label, "help": self.help}
        return {**common, "required": self.required, "when": when, **self.more}


@dataclass(frozen=True)
class Form:
    """What one item shows and asks."""

    panels: tuple[Panel, ...]
    fields: tuple[Field, ...]
    title: str = ""
    minimum_seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return the form as JSON has it."""
        return {
            "title": self.title,
            "minimum_seconds": self.minimum_seconds,
            "panels": [panel.as_dict() for panel in self.panels],
            "fields": [one.as_dict() for one in self.fields],
        }

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Form:
        """Read a form from JSON; refuse one that could not be drawn or answered."""
        try:
            form = cls(
                tuple(_panel(one) for one in found["panels"]),
                tuple(_field(one) for one in found["fields"]),
                str(found.get("title", "")),
                float(found.get("minimum_seconds", 0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EnsueError(f"This is no form: {type(error).__name__} at {error}.") from None
        for problem in form_problems(form):
            raise EnsueError(f"This is no form: {problem}.")
        return form

    def panel(self, id: str) -> Panel:
        """Return the panel of an id."""
        for panel in self.panels:
            if panel.id == id:
                return panel
        raise EnsueError(f"The form has no panel {id!r}.")


def options(*pairs: tuple[Any, str]) -> dict[str, Any]:
    """Return the options of a choice, each a value and its words."""
    return {"options": [{"value": value, "label": label} for value, label in pairs]}


def _panel(found: Mapping[str, Any]) -> Panel:
    sentences = found.get("sentences")
    return Panel(
        str(found["id"]),
        str(found.get("title", "")),
        None if sentences is not None else str(found["text"]),
        None if sentences is None else tuple(str(one) for one in sentences),
        str(found.get("direction", "auto")),
        tuple((int(start), int(end)) for start, end in found.get("marks", ())),
    )


_COMMON = ("id", "type", "label", "help", "required", "when")


def _field(found: Mapping[str, Any]) -> Field:
    more = {key: value for key, value in found.items() if key not in _COMMON}
    help, required = str(found.get("help") or ""), found.get("required", True)
    if not isinstance(required, bool):
        raise EnsueError(
            f"This is no form: the field {found['id']!r} has required = {_shown(required)},"
            " which is neither true nor false."
        )
    return Field(
        str(found["id"]), str(found["type"]), str(found["label"]), more, help, required, found.get("when")
    )


# What is wrong with a form


def form_problems(form: Form) -> Iterator[str]:
    """Yield what is wrong with a form itself, a few words each."""
    known = [one.id for one in form.fields]
    for name, ids in (("panel", [panel.id for panel in form.panels]), ("field", known)):
        for id in sorted({id for id in ids if ids.count(id) > 1}):
            yield f"the {name} {id!r} is there twice"
    if not form.fields:
        yield "there is no field to answer"
    for panel in form.panels:
        if any(not 0 <= start < end <= len(panel.whole) for start, end in panel.marks):
            yield f"a mark of the panel {panel.id!r} is not within its text"
    for number, one in enumerate(form.fields):
        found = list(_field_problems(one, form.panels, form.fields[:number]))
        yield from found
        if not found and not _is_json(one.as_dict()):
            yield f"the field {one.id!r} holds what JSON does not have, such as a date, inf or nan"


def _field_problems(one: Field, panels: Sequence[Panel], before: Sequence[Field]) -> Iterator[str]:
    """Yield what is wrong with a field among panels and behind other fields."""
    there = [panel.id for panel in panels]
    if one.type not in TYPES:
        yield f"the field {one.id!r} is of type {_shown(one.type)}; there is {', '.join(TYPES)}"
        return
    if one.when is not None:
        yield from _when_problems(one, one.when, before)
    for key in TYPES[one.type]:
        if key not in one.more:
            yield f"the field {one.id!r} of type {one.type} has no {key!r}"
    for key in ("panel", "left", "right"):
        if key in one.more and one.more[key] not in there:
            yield f"the field {one.id!r} names the panel {_shown(one.more[key])}, which is not there"
    if one.type in _OF_SENTENCES and any(
        one.more.get("panel") == panel.id and not panel.sentences for panel in panels
    ):
        yield f"the field {one.id!r} is about sentences, and the panel {_shown(one.more['panel'])} has none"
    if one.type == "preference" and "left" in one.more and one.more["left"] == one.more.get("right"):
        yield f"the field {one.id!r} compares the panel {_shown(one.more['left'])} with itself"
    if not _bounded(one.more.get("own_words"), there):
        yield f"the field {one.id!r} has own_words that name no panel and no longest run"
    for low, high in (("least_words", "most_words"), ("least", "most")):
        yield from _range_problems(one, low, high)
    yield from _list_problems(one)


def _when_problems(one: Field, when: Mapping[str, Any], before: Sequence[Field]) -> Iterator[str]:
    """Yield what is wrong with when a field is asked: of no other field, or never."""
    if lacking := [key for key in ("field", "equals") if when.get(key) is None]:
        yield f"the field {one.id!r} has when without {lacking[0]!r}"
        return
    other = next((field for field in before if field.id == when["field"]), None)
    if other is None:
        yield f"the field {one.id!r} depends on {_shown(when['field'])}, which is no field before it"
    elif _is_json(dict(when)) and not list(_list_problems(other)) and not _may_be(other, when["equals"]):
        yield f"the field {one.id!r} is never asked: {_shown(when['equals'])} is no answer to {other.id!r}"


def _may_be(other: Field, value: Any) -> bool:
    """Return whether a value may be the answer to a field; of those that take anything, it may."""
    if other.type in {"choice", "choices"}:
        values = [option["value"] for option in other.more.get("options", ())]
        if other.type == "choice":
            return among(value, values)
        # Several are compared as they are answered: in the order of the form.
        return isinstance(value, list) and value == [option for option in values if among(option, value)]
    if other.type == "preference":
        return value in ("left", "right") or (value == "tie" and bool(other.more.get("tie")))
    ends = (other.more.get("least"), other.more.get("most"))
    if other.type == "scale" and all(map(_is_number, ends)):
        return _is_number(value) and ends[0] <= value <= ends[1]
    return True


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _shown(value: Any) -> str:
    """Return a value as it was written, cut where it is long."""
    words = json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
    return words if len(words) <= 60 else f"{words[:57]}…"


def _list_problems(one: Field) -> Iterator[str]:
    """Yield what is wrong with what a field lists: nobody could answer it, or its page would fail."""
    for key, (name, read) in _KNOWN_BY.items():
        listed = one.more.get(key, _NOTHING)
        if listed is _NOTHING:
            continue
        if not isinstance(listed, list | tuple) or not all(_is_entry(entry, name, read) for entry in listed):
            yield (
                f"the field {one.id!r} has {key} that are no list of tables, each with its {name!r} and {read!r}"
            )
        elif not listed:
            yield f"the field {one.id!r} has no {key}"
        elif words := next(filter(None, (_unsayable(key, entry[name]) for entry in listed)), ""):
            yield f"the field {one.id!r} has {name} = {words}"
        elif len({_told(key, entry[name]) for entry in listed}) < len(listed):
            yield f"the field {one.id!r} has {key} of which two have the same {name!r}"
        elif one.type == "choices" and _above(one.more.get("least"), len(listed)):
            yield f"the field {one.id!r} can never be answered: it has fewer {key} than its least"
    if (labels := one.more.get("labels")) is not None:
        yield from _label_problems(one, labels)
    step = one.more.get("step", 1)
    if not _is_number(step) or step < 0:
        yield f"the field {one.id!r} has step = {_shown(step)}, which is no number from 0 on"


def _label_problems(one: Field, labels: Any) -> Iterator[str]:
    """Yield what is wrong with labels: words for passages, and by its points for a scale."""
    if one.type == "scale":
        if not isinstance(labels, Mapping) or not all(map(_is_point, labels.items())):
            yield f"the field {one.id!r} has labels that are no table of words by number"
    elif one.type == "spans":
        if not isinstance(labels, list | tuple) or not all(isinstance(label, str) for label in labels):
            yield f"the field {one.id!r} has labels that are no list of words"
        elif not labels:
            yield f"the field {one.id!r} has no labels"


def _is_entry(entry: Any, name: str, read: str) -> bool:
    if not isinstance(entry, Mapping) or not isinstance(entry.get(read), str | int | float):
        return False
    known = entry.get(name)
    return isinstance(known, str | bool) or _is_number(known)


def _unsayable(key: str, known: Any) -> str:
    """Return why a browser could not say what an entry is known by, nothing where it can."""
    if key == "entries" and not (isinstance(known, str) or is_whole(known)):
        return f"{_shown(known)}, which is no text or whole number"
    if is_whole(known) and abs(known) > _COUNTED:
        return f"{_shown(known)}, which no browser counts to"
    return ""


def _told(key: str, known: Any) -> tuple[bool, Any]:
    """Return what an entry is known by as a browser sends it, which writes 1 for 1.0, and ids as texts."""
    return isinstance(known, bool), str(known) if key == "entries" else known


def among(value: Any, allowed: Sequence[Any]) -> bool:
    """Return whether one of some values is meant: a number is the same however JSON writes it, and true is not 1."""
    return any(isinstance(value, bool) == isinstance(other, bool) and value == other for other in allowed)


def _is_point(label: tuple[Any, Any]) -> bool:
    try:
        return math.isfinite(float(label[0])) and isinstance(label[1], str)
    except (TypeError, ValueError):
        return False


def _is_number(value: Any) -> bool:
    """Return whether a value is a number that a form can count with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _above(least: Any, most: int) -> bool:
    return isinstance(least, int | float) and least > most


def _range_problems(one: Field, low: str, high: str) -> Iterator[str]:
    """Yield what is wrong with the two ends of a field, numbers of which the first is not above the second."""
    ends = {key: one.more[key] for key in (low, high) if one.more.get(key) is not None}
    strange = [key for key, end in ends.items() if not _is_number(end)]
    for key in strange:
        yield f"the field {one.id!r} has {key} = {_shown(ends[key])}, which is no number"
    if len(ends) == 2 and not strange and ends[low] > ends[high]:
        yield f"the field {one.id!r} can never be answered: {low} = {ends[low]} is above {high} = {ends[high]}"


def _bounded(own: Any, panels: Sequence[str]) -> bool:
    return own is None or (
        isinstance(own, dict)
        and own.get("panel") in panels
        and is_whole(own.get("longest"))
        and own["longest"] > 0
    )


def is_whole(value: Any) -> bool:
    """Return whether a value of JSON is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)
