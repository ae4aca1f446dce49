"""From what is published to a board: ranks, order, search, the best score over time, diagnostics. Nothing else.

A rank compares what was graded here: submissions alone have one. Baselines (human, published, measured) stand where
their score puts them, marked and without a rank. Scores that are the same at the board's digits are a tie and share
the better rank (1, 2, 2, 4). What has no score, because a task is missing, is last whichever way a table is sorted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from ensue.report.figure import Figure

SUBMISSION, HUMAN = "submission", "human"
# Fewer examples than this in one diagnostic cell would come close to telling which of them were right.
FEWEST = 10
WORDS = ("system", "team", "published")
SCORE = "score"
# Where a column's figures need less room than its metric's name.
_SHORT = {
    "f1a": "F1a",
    "em": "EM",
    "mcc": "MCC",
    "r3": "R3",
    "accuracy": "acc.",
    "gender_parity": "parity",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "f1": "F1",
}


class Column(NamedTuple):
    """A task's column: which metric row of a grading stands in it."""

    task: str
    metric: str
    title: str = ""
    covers: str = ""  # what of it is partial or surrogate data
    settings: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """Return its name in addresses.

        >>> Column("AX-b", "mcc").key, Column("shuffle", "accuracy", settings={"block_size": 5}).key
        ('AX-b.mcc', 'shuffle.accuracy.block_size=5')
        """
        told = [f"{name}={value}" for name, value in self.settings.items() if name != "split"]
        return ".".join([self.task, self.metric, *told])

    @property
    def heading(self) -> str:
        """Return what it is of, in words."""
        return self.title or self.task

    @property
    def words(self) -> str:
        """Return its metric in few words, with what tells it from the others of its task.

        >>> Column("CB", "accuracy").words, Column("shuffle", "accuracy", settings={"block_size": 5}).words
        ('acc.', 'acc. 5')
        """
        told = [f"{value}" for name, value in self.settings.items() if name != "split"]
        return " ".join([_SHORT.get(self.metric, self.metric.replace("_", " ")), *told])

    def find(self, rows: Iterable[Mapping[str, Any]], digits: int) -> Figure | None:
        """Return the figure that belongs into this column, rounded; None where there is none."""
        for row in rows:
            same = (row["task"], row["metric"]) == (self.task, self.metric)
            if same and all(row["settings"].get(key) == value for key, value in self.settings.items()):
                return rounded(row, digits)
        return None


@dataclass(frozen=True)
class Entry:
    """What a board shows of one submission or baseline; its figures are rounded as the board says."""

    id: str
    kind: str
    system: str
    published_at: datetime
    score: Figure | None = None
    figures: tuple[Figure | None, ...] = ()  # in the order of the board's columns
    team: str = ""
    description: str = ""
    parameters: str = ""
    sharing: str = ""
    data: str = ""
    link: str = ""
    code: str = ""
    covers: str = ""
    graded_at: datetime | None = None
    labels_version: int = 0  # of the labels that its figures come from
    is_stale: bool = False  # it is yet to be graded with the labels of today

    @property
    def is_baseline(self) -> bool:
        return self.kind != SUBMISSION

    @cached_property
    def words(self) -> str:
        """Return everything that is searched."""
        parts = (self.system, self.team, self.kind, self.description, self.parameters, self.data)
        return "\n".join(parts).casefold()


class Row(NamedTuple):
    """An entry with its rank (None for baselines and what has no score) and whether it shares it."""

    entry: Entry
    rank: int | None
    is_tied: bool = False


def rounded(row: Mapping[str, Any], digits: int) -> Figure | None:
    """Return a metric row as a figure of so many digits; None where its value is no number."""
    value = cut(row.get("value"), digits)
    if value is None:
        return None
    low, high = row.get("ci95") or (None, None)
    return Figure(value, cut(low, digits), cut(high, digits), int(row.get("n") or 0), row.get("clusters"))


def cut(value: float | None, digits: int) -> float | None:
    """Round a number; what is no finite number is None, and there is no minus before a zero.

    >>> cut(0.71549, 3), cut(float("nan"), 3), cut(-0.0001, 3)
    (0.715, None, 0.0)
    """
    if value is None or isinstance(value, bool) or not math.isfinite(value):
        return None
    return round(value, digits) + 0.0


def standing(entries: Iterable[Entry]) -> list[Row]:
    """Return entries in the order of the board: by score, then the earlier published; without a score, last."""
    ordered = sorted(entries, key=_place)
    counted = [entry.score.value for entry in ordered if entry.score and not entry.is_baseline]
    first: dict[float, int] = {}
    times: dict[float, int] = {}
    for place, score in enumerate(counted, 1):
        first.setdefault(score, place)
        times[score] = times.get(score, 0) + 1
    rows = []
    for entry in ordered:
        if entry.is_baseline or entry.score is None:
            rows.append(Row(entry, None))
        else:
            rows.append(Row(entry, first[entry.score.value], times[entry.score.value] > 1))
    return rows


def _place(entry: Entry) -> tuple[bool, float, datetime, str]:
    score = entry.score
    return (score is None, -score.value if score else 0.0, entry.published_at, entry.id)


# Sorted and searched


def arrange(rows: Sequence[Row], columns: Sequence[Column], by: str, *, descending: bool) -> list[Row]:
    """Return rows sorted by a column; rows alike in it stay in the order they had, and missing values are last."""
    if by in WORDS:
        keys: list[Any] = [_word(row.entry, by) for row in rows]
    else:
        place = None if by == SCORE else [column.key for column in columns].index(by)
        figures = (row.entry.score if place is None else row.entry.figures[place] for row in rows)
        keys = [figure.value if figure else None for figure in figures]
    numbered = [number for number, key in enumerate(keys) if key is not None]
    # Sorting in reverse keeps the order of what is alike, too.
    numbered.sort(key=lambda number: keys[number], reverse=descending)
    missing = [number for number, key in enumerate(keys) if key is None]
    return [rows[number] for number in [*numbered, *missing]]


def sortable(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns that a board can be sorted by."""
    return [SCORE, *WORDS, *(column.key for column in columns)]


def _word(entry: Entry, by: str) -> str | datetime | None:
    if by == "published":
        return entry.published_at
    return str(getattr(entry, by)).casefold() or None


def search(rows: Iterable[Row], words: str) -> list[Row]:
    """Return the rows in which every word occurs, whatever its case: in names, description, parameters or data."""
    found = list(rows)
    for word in words.casefold().split():
        found = [row for row in found if word in row.entry.words]
    return found


# Over time


class Step(NamedTuple):
    """A submission that was better than all before it."""

    at: datetime
    score: float
    entry: Entry


class Series(NamedTuple):
    """The figures of one column over time: of every submission, of those that were the best so far, and of people."""

    dots: list[Step]
    best: list[Step]
    human: float | None


def over_time(entries: Iterable[Entry], place: int | None = None) -> Series:
    """Return the scores over time, or what stands in a task's column, by its place among the columns."""
    dots, human = [], []
    for entry in entries:
        figure = entry.score if place is None else entry.figures[place]
        if figure is not None and entry.kind == HUMAN:
            human.append(figure.value)
        elif figure is not None and not entry.is_baseline:
            dots.append(Step(entry.published_at, figure.value, entry))
    best: list[Step] = []
    for step in sorted(dots, key=lambda step: (step.at, -step.score, step.entry.id)):
        if not best or step.score > best[-1].score:
            best.append(step)
    # Where several figures of people are known, the best.
    return Series(dots, best, max(human, default=None))


# What the data cover


def covers(columns: Iterable[Column]) -> list[tuple[str, str]]:
    """Return the tasks whose data are partial or surrogate, each once, with what is said of it."""
    found: dict[str, str] = {}
    for column in columns:
        if column.covers:
            found.setdefault(column.task, column.covers)
    return list(found.items())


# Diagnostics


class Phenomenon(NamedTuple):
    """Where a diagnostic figure belongs: its set and metric, the coarse category, and the fine tag within it."""

    task: str
    metric: str
    category: str = ""
    tag: str = ""


def diagnostics(rows: Iterable[Mapping[str, Any]], digits: int) -> dict[Phenomenon, Figure | None]:
    """Return the diagnostic figures of a grading, in its order; None where there are too few examples.

    A baseline does not say how many there were.
    """
    found: dict[Phenomenon, Figure | None] = {}
    for row in rows:
        settings = row["settings"]
        place = Phenomenon(
            row["task"], row["metric"], str(settings.get("category", "")), str(settings.get("tag", ""))
        )
        figure = rounded(row, digits)
        found.setdefault(place, figure if figure is not None and not 0 < figure.n < FEWEST else None)
    return found


def phenomena(of_entries: Iterable[Mapping[Phenomenon, Any]]) -> list[Phenomenon]:
    """Return every phenomenon that any grading knows: by set and metric, all before parts, as first met."""
    found: dict[Phenomenon, None] = {}
    for one in of_entries:
        found.update(dict.fromkeys(one))
    categories = list(dict.fromkeys(one.category for one in found))
    sets = list(dict.fromkeys((one.task, one.metric) for one in found))
    place = {one: (sets.index(one[:2]), categories.index(one.category), bool(one.tag)) for one in found}
    return sorted(found, key=lambda one: place[one])


def shade(value: float) -> int:
    """Return how dark a cell of a heat map is, 0 to 9; what is no better than nothing is 0.

    >>> shade(-0.2), shade(0.04), shade(0.55), shade(1.0)
    (0, 0, 5, 9)
    """
    return max(0, min(9, math.floor(value * 10 + 1e-9)))
