"""Annotated chapter transitions: the four aspects of the paper's table 1, annotation files and empty sheets."""

from __future__ import annotations

import csv
import difflib
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError
from ensue.text.io.rows import json_objects


class Events(StrEnum):
    """Whether what was going on is over when the chapter ends."""

    NEW = "new event"
    CONTINUES = "event continues"


class Actors(StrEnum):
    """Whether the next chapter keeps to the same point of view and main character."""

    CHANGE = "change"
    SAME = "no change"


class Location(StrEnum):
    """Whether the next chapter is set where the last one was."""

    CHANGE = "change"
    SAME = "no change"


class Continuity(StrEnum):
    """How the time of the next chapter lies to the time of the last one."""

    DISCONTINUOUS = "discontinuous"
    CONTINUOUS = "continuous"
    ANALEPSIS = "analepsis"
    PARALLEL = "parallel"


Category = Events | Actors | Location | Continuity

ASPECTS: dict[str, type[Events] | type[Actors] | type[Location] | type[Continuity]] = {
    "events": Events,
    "actors": Actors,
    "location": Location,
    "continuity": Continuity,
}

_DEFINITIONS: dict[str, dict[str, str]] = {
    "events": {
        Events.NEW: "the old event is over, the chapter opens with a new one",
        Events.CONTINUES: "the event of the last chapter goes on into the next",
    },
    "actors": {
        Actors.CHANGE: "someone else tells the story or stands in its middle",
        Actors.SAME: "point of view and main character stay",
    },
    "location": {
        Location.CHANGE: "the chapter is set in another place",
        Location.SAME: "the place stays",
    },
    "continuity": {
        Continuity.DISCONTINUOUS: "time moves on by more than a night",
        Continuity.CONTINUOUS: "at most a night passes",
        Continuity.ANALEPSIS: "a flashback: something earlier is told",
        Continuity.PARALLEL: "time goes back to that of an earlier chapter, mostly to follow others or other events",
    },
}

COLUMNS = ("example", *ASPECTS)
_ANNOTATOR = "annotator"


@dataclass(frozen=True, slots=True)
class Transition:
    """What was annotated of one example; an aspect is None where as many annotators said one thing as another."""

    example: str
    events: Events | None
    actors: Actors | None
    location: Location | None
    continuity: Continuity | None

    def category(self, aspect: str) -> Category | None:
        """The category of one aspect by its name."""
        found: Category | None = getattr(self, aspect)
        return found


@dataclass(frozen=True)
class Annotations:
    """The transitions of a file by example, how many votes tied by aspect, and how many rows were not filled in."""

    transitions: dict[str, Transition]
    ties: dict[str, int]
    annotators: int
    empty: int
    source: str


def definition(aspect: str, category: str) -> str:
    """What a category means.

    >>> definition("continuity", "continuous")
    'at most a night passes'
    """
    return _DEFINITIONS[aspect][category]


def read_annotations(path: str | Path) -> Annotations:
    """Read an annotation file, CSV or JSON lines, and settle what several annotators said by most votes.

    Rows whose four aspects are all empty are sheets not filled in: they are counted and left out.
    """
    path = Path(path)
    votes: dict[str, dict[str, dict[str, Category]]] = {}
    empty = 0
    for place, row in _rows(path):
        values = {column: _cell(row, column, place) for column in (*COLUMNS, _ANNOTATOR)}
        example, annotator = values["example"], values[_ANNOTATOR]
        if not example:
            raise EnsueError(f"{place}: the column 'example' is empty.")
        if not any(values[aspect] for aspect in ASPECTS):
            empty += 1
            continue
        given = votes.setdefault(example, {})
        if annotator in given:
            who = f" by annotator {annotator!r}" if annotator else ""
            raise EnsueError(f"{place}: example {example!r} is annotated a second time{who}.")
        given[annotator] = {aspect: _category(aspect, values[aspect], place) for aspect in ASPECTS}
    if not votes:
        raise EnsueError(f"{path} has no annotations{' yet: all its rows are empty' if empty else ''}.")
    ties: Counter[str] = Counter()
    settled = {example: _settle(example, list(given.values()), ties) for example, given in votes.items()}
    annotators = {name for given in votes.values() for name in given}
    return Annotations(settled, dict(ties), len(annotators), empty, str(path))


def write_sheet(examples: Iterable[str], path: str | Path) -> int:
    """Write a CSV sheet to be filled in, a row per example, and say how many rows it has."""
    path = Path(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    names = list(dict.fromkeys(examples))
    writer.writerows([name, *("" for _ in ASPECTS)] for name in names)
    try:
        # Never over a file that is there: it may be a sheet somebody spent days on.
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
    except FileExistsError as error:
        raise EnsueError(f"{path} is there already; name another file for the empty sheet.") from error
    except OSError as error:
        raise EnsueError(f"{path} cannot be written: {error.strerror or error}.") from error
    return len(names)


def run_examples(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """The chapter-break examples of a run's items, each once, in order, as a sheet wants them."""
    found: dict[str, None] = {}
    for item in items:
        if item["settings"].get("boundary") == "chapter":
            found[example_of(item)] = None
    return list(found)


def example_of(item: Mapping[str, Any]) -> str:
    """The example an item is about: an item is an example at one prefix length."""
    outputs = item.get("outputs")
    example = outputs.get("example") if isinstance(outputs, dict) else None
    return str(example or str(item["id"]).rpartition("#")[0] or item["id"])


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of a file with where each stands; a file that opens with a brace is JSON lines."""
    if not path.is_file():
        raise EnsueError(f"{path} is not an annotation file: there is no such file.")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EnsueError(f"{path} is not UTF-8 text; save it as UTF-8.") from error
    except OSError as error:
        raise EnsueError(f"{path} cannot be read: {error.strerror or error}.") from error
    if text.lstrip().startswith("{"):
        for place, row in json_objects(path):
            _check_columns(row, place)
            yield place, row
    else:
        yield from _csv_rows(path, text)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        _check_columns(reader.fieldnames or (), f"{path}, line 1")
        for row in reader:
            place = f"{path}, line {reader.line_num}"
            if None in row:
                raise EnsueError(f"{place}: there are more cells than columns.")
            yield place, row
    except csv.Error as error:
        raise EnsueError(f"{path}, line {reader.line_num}: not CSV ({error}).") from error


def _check_columns(present: Iterable[str], place: str) -> None:
    names = list(present)
    missing = [column for column in COLUMNS if column not in names]
    if missing:
        close = _closest(missing[0], [name for name in names if name not in COLUMNS])
        hint = f" instead of {close!r}" if close else ""
        raise EnsueError(f"{place}: an annotation needs a column {missing[0]!r}{hint}.")


def _cell(row: Mapping[str, Any], column: str, place: str) -> str:
    value = row.get(column)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EnsueError(f"{place}: {column!r} must be text, not {value!r}.")
    return value.strip()


def _category(aspect: str, value: str, place: str) -> Category:
    categories = ASPECTS[aspect]
    try:
        return categories(value)
    except ValueError:
        known = [str(category) for category in categories]
        if not value:
            raise EnsueError(f"{place}: the column {aspect!r} is empty; write {_or(known)}.") from None
        close = _closest(value, known)
        hint = f"did you mean {close!r}?" if close else f"it is {_or(known)}."
        raise EnsueError(f"{place}: {value!r} is no category of {aspect}; {hint}") from None


def _closest(value: str, known: list[str]) -> str | None:
    by_case = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(value.casefold(), by_case, n=1, cutoff=0.6)
    return by_case[close[0]] if close else None


def _or(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _settle(example: str, votes: list[dict[str, Category]], ties: Counter[str]) -> Transition:
    """Most votes win, aspect by aspect: two who disagree about the place may well agree about the time."""
    settled: dict[str, Any] = {}
    for aspect in ASPECTS:
        ranked = Counter(vote[aspect] for vote in votes).most_common()
        tied = len(ranked) > 1 and ranked[0][1] == ranked[1][1]
        ties[aspect] += tied
        settled[aspect] = None if tied else ranked[0][0]
    return Transition(example, **settled)
