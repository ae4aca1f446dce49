"""The one form that every kind of annotation compiles its items to: panels to read and fields to answer.

A browser draws it, a server checks answers against it, an export holds what was given. Values by type of field:

| type | its own keys | value |
|---|---|---|
| `choice` | `options` (`value`, `label`) | a value |
| `choices` | `options` | a list of values |
| `scale` | `least`, `most`, `step`, `labels` (words by number) | a number |
| `text` | `least_words`, `most_words`; `own_words` (`panel`, `longest`: words in a row that may be its) | a string |
| `spans` | `panel`, `labels` | a list of `{"start", "end", "label", "note"}` in characters of the panel |
| `order` | `entries` (`id`, `text`) | every id, in the order chosen |
| `place` | `panel`, `sentence` | before which of the panel's sentences, 0 to as many as there are |
| `rank` | `entries` | the place of each id from 1 on; ties are allowed |
| `preference` | `left`, `right` (panels), `tie` | `left`, `right` or `tie` |
| `sentences` | `panel`, `options`, `reason` (`required`) | for each sentence of the panel `{"value", "reason"}` |
"""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ensue.benchmarks.crowd.writing import copying_fault
from ensue.errors import EnsueError

Values = Mapping[str, Any]
# The most that an answer may hold, whatever the form says.
LONGEST_TEXT = 100_000
LONGEST_NOTE = 5_000
MOST_SPANS = 2_000


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
    def length(self) -> int:
        """The number of characters of the text; sentences are joined by one space."""
        return len(self.text if self.text is not None else " ".join(self.sentences or ()))


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
    help, required = str(found.get("help") or ""), bool(found.get("required", True))
    return Field(
        str(found["id"]), str(found["type"]), str(found["label"]), more, help, required, found.get("when")
    )


# What is wrong with a form


def form_problems(form: Form) -> Iterator[str]:
    """Yield what is wrong with a form itself, a few words each."""
    panels, known = {panel.id for panel in form.panels}, [one.id for one in form.fields]
    for name, ids in (("panel", [panel.id for panel in form.panels]), ("field", known)):
        for id in sorted({id for id in ids if ids.count(id) > 1}):
            yield f"the {name} {id!r} is there twice"
    if not form.fields:
        yield "there is no field to answer"
    for panel in form.panels:
        if any(not 0 <= start < end <= panel.length for start, end in panel.marks):
            yield f"a mark of the panel {panel.id!r} is not within its text"
    for number, one in enumerate(form.fields):
        if one.type not in _TYPES:
            yield f"the field {one.id!r} is of type {one.type!r}; there is {', '.join(_TYPES)}"
            continue
        if one.when is not None and one.when.get("field") not in known[:number]:
            yield f"the field {one.id!r} depends on {one.when.get('field')!r}, which is no field before it"
        for key in _TYPES[one.type].needs:
            if key not in one.more:
                yield f"the field {one.id!r} of type {one.type} has no {key!r}"
        for key in ("panel", "left", "right"):
            if key in one.more and one.more[key] not in panels:
                yield f"the field {one.id!r} names the panel {one.more[key]!r}, which is not there"
        if not _bounded(one.more.get("own_words"), panels):
            yield f"the field {one.id!r} has own_words that name no panel and no longest run"
        for key in ("options", "entries"):
            if key in one.more and not one.more[key]:
                yield f"the field {one.id!r} has no {key}"


def _bounded(own: Any, panels: set[str]) -> bool:
    return own is None or (
        isinstance(own, dict) and own.get("panel") in panels and _whole(own.get("longest"))
    )


# What is wrong with an answer


def check_answer(form: Form, values: Any, *, final: bool = True) -> list[str]:
    """Return what is wrong with an answer, one sentence each; a draft may be incomplete, but not of another form."""
    return [words for _, words in answer_problems(form, values, final=final)]


def answer_problems(form: Form, values: Any, *, final: bool = True) -> list[tuple[str, str]]:
    """Return what is wrong with an answer: the field, where it is one of the form's, and a sentence."""
    if not isinstance(values, dict):
        return [("", "The values are no object.")]
    known = {one.id: one for one in form.fields}
    problems = [("", f"There is no field {_shown(key)}.") for key in values if key not in known]
    for one in form.fields:
        given = values.get(one.id)
        if given is None:
            if final and one.required and shown(one, values):
                problems.append((one.id, f"{_name(one)} is not answered."))
            continue
        if final and not shown(one, values):
            continue
        found = _TYPES[one.type].check(form, one, given, final)
        problems += [(one.id, f"{_name(one)}: {words}.") for words in found]
    return problems


def shown(one: Field, values: Values) -> bool:
    """Return whether a field is asked, given the other values."""
    return one.when is None or values.get(one.when["field"]) == one.when.get("equals")


def settled(form: Form, values: Values) -> dict[str, Any]:
    """Return what a final answer says: the fields that were asked and have a value."""
    return {
        one.id: values[one.id] for one in form.fields if values.get(one.id) is not None and shown(one, values)
    }


def count_words(text: str) -> int:
    """Return the number of words of a text, divided by white space.

    >>> count_words("One, two  -- three.")
    4
    """
    return len(text.split())


def _name(one: Field) -> str:
    return one.label.strip().rstrip(":?.") or one.id


def _shown(value: Any) -> str:
    words = json.dumps(value, ensure_ascii=True, default=str)
    return words if len(words) <= 60 else words[:57] + "…"


Check = Callable[[Form, Field, Any, bool], Iterator[str]]


@dataclass(frozen=True)
class _Type:
    check: Check
    needs: tuple[str, ...] = ()


def _values(one: Field) -> list[Any]:
    return [option["value"] for option in one.more["options"]]


def _among(value: Any, allowed: Sequence[Any]) -> bool:
    # Not `in` alone: JSON's true is Python's 1.
    return any(type(value) is type(other) and value == other for other in allowed)


def _choice(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    if not _among(given, _values(one)):
        yield f"{_shown(given)} is none of the options"


def _choices(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    if not isinstance(given, list):
        yield "the value is no list"
        return
    allowed = _values(one)
    for value in given:
        if not _among(value, allowed):
            yield f"{_shown(value)} is none of the options"
            return
    if len({json.dumps(value) for value in given}) != len(given):
        yield "an option is there twice"
    if final and one.required and len(given) < int(one.more.get("least", 1)):
        yield f"choose at least {int(one.more.get('least', 1))}"


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _scale(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    least, most, step = one.more["least"], one.more["most"], one.more.get("step", 1)
    if not _number(given):
        yield f"{_shown(given)} is no number"
    elif not least <= given <= most:
        yield f"{_shown(given)} is not from {least} to {most}"
    elif step and abs((given - least) / step - round((given - least) / step)) > 1e-6:
        yield f"{_shown(given)} is between two points of the scale"


def unwanted(text: str) -> bool:
    """Return whether a text has characters that no database or page should be given."""
    return any(
        unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t\r" for character in text
    )


def _written(given: Any, most: int = LONGEST_TEXT) -> Iterator[str]:
    if not isinstance(given, str):
        yield "the value is no text"
    elif len(given) > most:
        yield f"there are {len(given):,} characters; at most {most:,} are taken"
    elif unwanted(given):
        yield "there is a control character in it; leave it out"


def _text(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    problems = list(_written(given))
    yield from problems
    if problems or not final:
        return
    count = count_words(given)
    least, most = int(one.more.get("least_words") or 0), one.more.get("most_words")
    if one.required and count < max(least, 1):
        yield f"write at least {least:,} words; there are {count:,}" if least > 1 else "write something"
    elif most is not None and count > int(most):
        yield f"write at most {int(most):,} words; there are {count:,}"
    if own := one.more.get("own_words"):
        panel = form.panel(own["panel"])
        name = f"“{panel.title}”" if panel.title else "the text"
        fault = copying_fault(given, {name: panel.text or ""}, int(own["longest"]))
        if fault is not None:
            yield fault.rstrip(".")


def _spans(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    if not isinstance(given, list) or not all(isinstance(span, dict) for span in given):
        yield "the value is no list of spans"
        return
    if len(given) > MOST_SPANS:
        yield f"there are {len(given):,} spans; at most {MOST_SPANS:,} are taken"
        return
    length = form.panel(one.more["panel"]).length
    for span in given:
        start, end = span.get("start"), span.get("end")
        if not (_whole(start) and _whole(end) and 0 <= start < end <= length):
            yield f"the span {_shown([start, end])} is not within the text"
        elif span.get("label") not in one.more["labels"]:
            yield f"{_shown(span.get('label'))} is none of the labels"
        elif span.keys() - {"start", "end", "label", "note"}:
            yield "a span has a key that is none of start, end, label and note"
        else:
            yield from _written(span.get("note") or "", LONGEST_NOTE)
    if final and one.required and not given and one.more.get("least"):
        yield f"mark at least {one.more['least']}"


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ids(one: Field) -> list[str]:
    return [str(entry["id"]) for entry in one.more["entries"]]


def _order(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    ids = _ids(one)
    if not isinstance(given, list) or not all(isinstance(id, str) for id in given):
        yield "the value is no list of entries"
    elif sorted(given) != sorted(ids) and (final or len(set(given)) != len(given) or set(given) - set(ids)):
        yield "the value does not hold every entry once"


def _place(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    count = len(form.panel(one.more["panel"]).sentences or ())
    if not _whole(given) or not 0 <= given <= count:
        yield f"{_shown(given)} is no place from 0 to {count}"


def _rank(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    ids = _ids(one)
    if not isinstance(given, dict) or not set(given) <= set(ids):
        yield "the value is no place for each entry"
    elif not all(_whole(place) and 1 <= place <= len(ids) for place in given.values()):
        yield f"a place is none from 1 to {len(ids)}"
    elif final and set(given) != set(ids):
        yield "an entry has no place"


def _preference(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    allowed = ["left", "right", *(["tie"] if one.more.get("tie") else [])]
    if not _among(given, allowed):
        yield f"{_shown(given)} is none of {', '.join(allowed)}"


def _sentences(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    count = len(form.panel(one.more["panel"]).sentences or ())
    if not isinstance(given, list) or len(given) > count:
        yield f"the value is no list of {count} judgments"
        return
    for number, judgment in enumerate(given, 1):
        if judgment is None and not final:
            continue
        if not isinstance(judgment, dict) or judgment.keys() - {"value", "reason"}:
            yield f"sentence {number} is not judged"
            return
        if judgment.get("value") is None and not final:
            continue
        if not _among(judgment.get("value"), _values(one)):
            yield f"sentence {number}: {_shown(judgment.get('value'))} is none of the options"
        yield from _written(judgment.get("reason") or "", LONGEST_NOTE)
        if final and one.more.get("reason") == "required" and not str(judgment.get("reason") or "").strip():
            yield f"sentence {number} has no reason"
    if final and len(given) < count:
        yield f"{len(given)} of {count} sentences are judged"


_TYPES: dict[str, _Type] = {
    "choice": _Type(_choice, ("options",)),
    "choices": _Type(_choices, ("options",)),
    "scale": _Type(_scale, ("least", "most")),
    "text": _Type(_text),
    "spans": _Type(_spans, ("panel", "labels")),
    "order": _Type(_order, ("entries",)),
    "place": _Type(_place, ("panel", "sentence")),
    "rank": _Type(_rank, ("entries",)),
    "preference": _Type(_preference, ("left", "right")),
    "sentences": _Type(_sentences, ("panel", "options")),
}
