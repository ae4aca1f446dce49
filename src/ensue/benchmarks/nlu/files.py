"""Rows of the official files, tab-separated or JSON a line; every fault names file and line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from ensue.errors import EnsueError
from ensue.jsonl import parse_line, text_lines


class Found(NamedTuple):
    """A file of a split; `partial` is the number of rows where its name says that it holds only so many.

    `instead` says what its rows are where they are none of the published split's.
    """

    path: Path
    partial: int | None = None
    instead: str = ""


class Row(NamedTuple):
    """One row: its columns or JSON fields, and where it stands."""

    where: str
    fields: Mapping[str, object]

    def refuse(self, what: str) -> NoReturn:
        """Raise one sentence that says where and what."""
        raise EnsueError(f"{self.where}: {what}.")

    def value(self, name: str) -> object:
        if name not in self.fields:
            self.refuse(f"there is no {name!r}, only {', '.join(map(str, self.fields)) or 'nothing'}")
        return self.fields[name]

    def text(self, name: str) -> str:
        """Return a text as it stands, which must not be blank."""
        text = self.any_text(name)
        if not text.strip():
            self.refuse(f"{name!r} is empty")
        return text

    def any_text(self, name: str) -> str:
        """Return a text as it stands, blank or not."""
        value = self.value(name)
        if not isinstance(value, str):
            self.refuse(f"{name!r} is {_kind(value)} where a text was expected")
        return value

    def whole(self, name: str) -> int:
        """Return a whole number, not below zero."""
        value = self.value(name)
        if type(value) is int and value >= 0:  # nearly always, and ReCoRD has hundreds of thousands of them
            return value
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 18:
            return int(value)
        self.refuse(f"{name!r} is {_kind(value)} where a whole number from 0 was expected")

    def label(self, name: str, labels: Sequence[str]) -> str:
        """Return a label as submissions spell it; JSON's true and false and its numbers are spelled out."""
        value = self.value(name)
        spelled = json.dumps(value) if isinstance(value, bool | int) else value
        if spelled not in labels:
            self.refuse(f"the label {_short(value)} is none of {', '.join(labels)}")
        return str(spelled)

    def score(self, name: str, lowest: float, highest: float) -> float:
        """Return a number within a scale."""
        value = self.value(name)
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError
            score = float(value)
        except ValueError:
            self.refuse(f"{_short(value)} is not a score")
        except OverflowError:  # a whole number of hundreds of digits
            score = math.inf
        if not lowest <= score <= highest:
            self.refuse(f"the score {_short(value)} is not between {lowest:g} and {highest:g}")
        return score

    def inner(self, name: str) -> Row:
        """Return an object within the row, as a row."""
        value = self.value(name)
        if not isinstance(value, dict):
            self.refuse(f"{name!r} is {_kind(value)} where an object was expected")
        return Row(f"{self.where}, {name}", value)

    def rows(self, name: str) -> list[Row]:
        """Return a list of objects within the row, as rows."""
        value = self.value(name)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.refuse(f"{name!r} is {_kind(value)} where a list of objects was expected")
        return [Row(f"{self.where}, {name} {number}", item) for number, item in enumerate(value, 1)]


def find(home: Path, *names: str) -> Found | None:
    """Return the first of the files that is there, or else one marked as a part of it (`NAME.partialN.tsv`)."""
    for name in names:
        if (home / name).is_file():
            return Found(home / name)
    for name in names:
        begins, ends = f"{Path(name).stem}.partial", Path(name).suffix
        parts = [
            Found(path, int(count))
            for path in sorted(home.glob(f"{begins}*{ends}"))
            if (count := path.name.removeprefix(begins).removesuffix(ends)).isdecimal()
        ]
        if len(parts) > 1:
            listed = " and ".join(part.path.name for part in parts)
            raise EnsueError(f"{home} has {listed}; leave one of them, or put {name} there whole.")
        if parts:
            return parts[0]
    return None


def task_folder(folder: Path, *names: str) -> Path | None:
    """Return the folder of a task within the suite's folder, or that folder itself where it has the task's name."""
    if not folder.is_dir():
        raise EnsueError(f"{folder} is not a folder; name the data folder with --data.")
    wanted = {name.lower() for name in names}
    inside = sorted(path for path in folder.iterdir() if path.name.lower() in wanted and path.is_dir())
    if inside:
        return inside[0]
    return folder if folder.resolve().name.lower() in wanted else None


def tsv_rows(
    found: Found, columns: Sequence[str] | None = None, short: list[int] | None = None
) -> Iterator[Row]:
    """Return the rows of a tab-separated file; quotation marks mean nothing in it, as to the official readers.

    Without `columns` the first line names them. Rows with too few columns are refused or, where `short` is given,
    left out and their line numbers added to it.
    """
    names = list(columns) if columns is not None else None
    rows = 0
    for number, line in _lines(found.path):
        fields = line.split("\t")
        if names is None:
            names = fields
            if len(set(names)) != len(names):
                raise EnsueError(f"{found.path}, line {number}: a column is named twice.")
            continue
        rows += 1
        if short is not None and len(fields) < len(names):
            short.append(number)
            continue
        row = Row(f"{found.path}, line {number}", dict(zip(names, fields, strict=False)))
        if len(fields) != len(names):
            row.refuse(f"there are {len(fields)} columns where {len(names)} were expected")
        yield row
    _check_rows(found, rows)


def jsonl_rows(found: Found) -> Iterator[Row]:
    """Read the rows of a file with one JSON object a line."""
    rows = 0
    for number, line in _lines(found.path):
        where = f"{found.path}, line {number}"
        rows += 1
        yield Row(where, parse_line(line, where))
    _check_rows(found, rows)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Read numbered lines; one ends at a line feed, with or without a carriage return, nowhere else."""
    for number, line in text_lines(path, newline="\n"):
        yield number, line.removesuffix("\n").removesuffix("\r")


def _check_rows(found: Found, rows: int) -> None:
    if rows == 0:
        raise EnsueError(f"{found.path} has no rows; download it again or take it away.")
    if found.partial is not None and rows != found.partial:
        raise EnsueError(
            f"{found.path} has {rows} rows where its name says {found.partial}; rename the file."
        )


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return "null" if value is None else kinds.get(type(value), "an object") + f" ({_short(value)})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
