"""What is wrong with an answer to a form: a check for every type of field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ensue.benchmarks.crowd.writing import copying_fault
from ensue.benchmarks.people.form import Field, Form, Values, among, is_whole

# The most that an answer may hold, whatever the form says.
LONGEST_TEXT = 100_000
LONGEST_NOTE = 5_000
MOST_SPANS = 2_000


def check_answer(form: Form, values: Any, *, final: bool = True) -> list[str]:
    """Return what is wrong with an answer, one sentence each; a draft may be incomplete, but not of another form."""
    return [words for _, words in answer_problems(form, values, final=final)]


def answer_problems(form: Form, values: Any, *, final: bool = True) -> list[tuple[str, str]]:
    """Return what is wrong with an answer: the field, where it is one of the form's, and a sentence."""
    if not isinstance(values, dict):
        return [("", "The values are no object.")]
    known, asked = {one.id: one for one in form.fields}, asked_in(form, values)
    problems = [("", f"There is no field {in_words(key)}.") for key in values if key not in known]
    for one in form.fields:
        given = values.get(one.id)
        if given is None:
            if final and one.required and one.id in asked:
                problems.append((one.id, f"{_name(one)} is not answered."))
            continue
        # What is not asked is no answer, but the history keeps it: it must be what a draft may be.
        found = _CHECKS[one.type](form, one, given, final and one.id in asked)
        problems += [(one.id, f"{_name(one)}: {words}.") for words in found]
    return problems


def asked_in(form: Form, values: Values) -> set[str]:
    """Return the fields that are asked, given the values; what depends on one that is not is not asked either."""
    asked: set[str] = set()
    for one in form.fields:
        when = one.when
        if when is None or (when["field"] in asked and values.get(when["field"]) == when.get("equals")):
            asked.add(one.id)
    return asked


def settled(form: Form, values: Values) -> dict[str, Any]:
    """Return what a final answer says: the fields that were asked and have a value."""
    asked = asked_in(form, values)
    given = [one for one in form.fields if one.id in asked and values.get(one.id) is not None]
    return {one.id: as_listed(one, values[one.id]) for one in given}


def as_listed(one: Field, value: Any) -> Any:
    """Return a value as it is compared with others: options as the form has them, several in its order."""
    if one.type not in {"choice", "choices"}:
        return value
    chosen = [option for option in _values(one) if among(option, value if one.type == "choices" else [value])]
    return chosen if one.type == "choices" else chosen[0]


def count_words(text: str) -> int:
    """Return the number of words of a text, divided by white space.

    >>> count_words("One, two  -- three.")
    4
    """
    return len(text.split())


def _name(one: Field) -> str:
    return one.label.strip().rstrip(":?.") or one.id


def in_words(value: Any) -> str:
    """Return a value as JSON has it, cut where it is long."""
    words = json.dumps(value, ensure_ascii=True, default=str)
    return words if len(words) <= 60 else words[:57] + "…"


Check = Callable[[Form, Field, Any, bool], Iterator[str]]


def _values(one: Field) -> list[Any]:
    return [option["value"] for option in one.more["options"]]


def _choice(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    if not among(given, _values(one)):
        yield f"{in_words(given)} is none of the options"


def _choices(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    if not isinstance(given, list):
        yield "the value is no list"
        return
    allowed = _values(one)
    for value in given:
        if not among(value, allowed):
            yield f"{in_words(value)} is none of the options"
            return
    if len({json.dumps(value) for value in given}) != len(given):
        yield "an option is there twice"
    if final and one.required and len(given) < int(one.more.get("least", 1)):
        yield f"choose at least {int(one.more.get('least', 1))}"


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a number; a whole one may be larger than any float."""
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _scale(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    least, most, step = one.more["least"], one.more["most"], one.more.get("step", 1)
    if not is_number(given):
        yield f"{in_words(given)} is no number"
    elif not least <= given <= most:
        yield f"{in_words(given)} is not from {least} to {most}"
    elif step and abs((given - least) / step - round((given - least) / step)) > 1e-6:
        yield f"{in_words(given)} is between two points of the scale"


# Unicode's categories Cc and Cs, but for the end of a line and the tab.
_UNWANTED = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\ud800-\\udfff]")


def unwanted(text: str) -> bool:
    """Return whether a text has characters that no database or page should be given."""
    return _UNWANTED.search(text) is not None


def _written(given: Any, most: int = LONGEST_TEXT) -> Iterator[str]:
    if not isinstance(given, str):
        yield "the value is no text"
    elif len(given) > most:
        yield f"there are {len(given):,} characters; at most {most:,} are taken"
    elif unwanted(given):
        yield "there is a control character in it; leave it out"


def _or_nothing(given: Any) -> Any:
    return "" if given is None else given


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
        fault = copying_fault(given, {name: panel.whole}, int(own["longest"]))
        if fault is not None:
            yield fault.rstrip(".")


def _spans(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    if not isinstance(given, list) or not all(isinstance(span, dict) for span in given):
        yield "the value is no list of spans"
        return
    if len(given) > MOST_SPANS:
        yield f"there are {len(given):,} spans; at most {MOST_SPANS:,} are taken"
        return
    length = len(form.panel(one.more["panel"]).whole)
    for span in given:
        start, end = span.get("start"), span.get("end")
        if not (is_whole(start) and is_whole(end) and 0 <= start < end <= length):
            yield f"the span {in_words([start, end])} is not within the text"
        elif span.get("label") not in one.more["labels"]:
            yield f"{in_words(span.get('label'))} is none of the labels"
        elif span.keys() - {"start", "end", "label", "note"}:
            yield "a span has a key that is none of start, end, label and note"
        else:
            yield from _written(_or_nothing(span.get("note")), LONGEST_NOTE)
    least = one.more.get("least") or 0
    if final and one.required and len(given) < least:
        yield f"mark at least {least}"


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
    if not is_whole(given) or not 0 <= given <= count:
        yield f"{in_words(given)} is no place from 0 to {count}"


def _rank(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    ids = _ids(one)
    if not isinstance(given, dict) or not set(given) <= set(ids):
        yield "the value is no place for each entry"
    elif not all(is_whole(place) and 1 <= place <= len(ids) for place in given.values()):
        yield f"a place is none from 1 to {len(ids)}"
    elif final and set(given) != set(ids):
        yield "an entry has no place"


def _preference(form: Form, one: Field, given: Any, final: bool) -> Iterator[str]:
    allowed = ["left", "right", *(["tie"] if one.more.get("tie") else [])]
    if not among(given, allowed):
        yield f"{in_words(given)} is none of {', '.join(allowed)}"


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
        if not among(judgment.get("value"), _values(one)):
            yield f"sentence {number}: {in_words(judgment.get('value'))} is none of the options"
        yield from _written(_or_nothing(judgment.get("reason")), LONGEST_NOTE)
        if final and one.more.get("reason") == "required" and not str(judgment.get("reason") or "").strip():
            yield f"sentence {number} has no reason"
    if final and len(given) < count:
        yield f"{len(given)} of {count} sentences are judged"


_CHECKS: Mapping[str, Check] = {
    "choice": _choice,
    "choices": _choices,
    "scale": _scale,
    "text": _text,
    "spans": _spans,
    "order": _order,
    "place": _place,
    "rank": _rank,
    "preference": _preference,
    "sentences": _sentences,
}
