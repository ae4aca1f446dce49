"""One line of a stranger's file as a value: JSON without NaN, deep nesting or a key twice; faults are in words."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

_SHOWN = 40
# Squares and sums of larger numbers are no numbers any more.
LARGEST = 1e100


class Wrong(ValueError):
    """What is wrong with a value, in words without a full stop."""


def decode(line: bytes) -> str:
    """Return a line as text."""
    try:
        return line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise Wrong("not UTF-8 text") from None


def parse_json(line: bytes) -> Any:
    """Return the JSON value of a line."""
    text = decode(line)
    if not text.strip():
        raise Wrong("the line is blank")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Wrong(f"not JSON ({error.msg} at column {error.colno})") from None
    except RecursionError:
        raise Wrong("not a prediction but JSON nested too deep") from None
    except Wrong:
        raise
    except ValueError:  # a number of thousands of digits
        raise Wrong("not JSON (a number is too long)") from None


def _no_constant(name: str) -> None:
    raise Wrong(f"{name} is not a JSON value")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Wrong("an object names the same key twice")
    return found


_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_once)


def object_of(value: Any, what: str) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise Wrong(f"{what} is not a JSON object")
    return value


def member(row: dict[str, Any], key: str) -> Any:
    """Return what an object has under a key."""
    if key not in row:
        raise Wrong(f"there is no {key!r}")
    return row[key]


def number_of(value: Any, what: str) -> float:
    """Return a finite number, which may be spelled as text, of a size that can be reckoned with."""
    try:
        found = math.nan if isinstance(value, bool) or "_" in str(value) else float(value)
    except (ValueError, TypeError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise Wrong(f"the {what} {shown(value)} is not a finite number")
    if abs(found) > LARGEST:
        raise Wrong(f"the {what} {shown(value)} is larger than {LARGEST:g}")
    return found


def text_of(value: Any, what: str) -> str:
    """Return a text that can be written as UTF-8."""
    if not isinstance(value, str):
        raise Wrong(f"the {what} {shown(value)} is not a text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise Wrong(f"the {what} holds half of a surrogate pair, which is no character") from None
    return value


def label_of(value: Any, labels: Sequence[str]) -> str:
    """Return a label as it is spelled; JSON's numbers, true and false are spelled out."""
    said = str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else value
    if not isinstance(said, str) or said not in labels:
        named = ", ".join(labels[:20]) + (", …" if len(labels) > 20 else "")
        raise Wrong(f"the label {shown(value)} is none of {named}")
    return said


def shown(value: Any) -> str:
    """Return the beginning of a value, for a message."""
    if isinstance(value, bytes):
        value = value[: 2 * _SHOWN].decode("utf-8", "replace").rstrip("\r\n")
    text = json.dumps(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
