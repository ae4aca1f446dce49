"""Read boards from the tables, as everybody may see them; what has not changed since is not read again.

A grading never changes, so its figures are kept by its number. A whole board is kept by a mark of everything that it
shows, which takes milliseconds to ask for and is asked for where anything was written since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Connection, Integer, RowMapping, cast, func, select

from ensue.platform.boards import past
from ensue.platform.boards.board import Board, Boards
from ensue.platform.boards.past import Graded, Regrading
from ensue.platform.boards.standing import (
    SUBMISSION,
    Column,
    Entry,
    Phenomenon,
    Row,
    covers,
    cut,
    diagnostics,
    standing,
)
from ensue.platform.database.schema import board_tasks, events, gradings, submissions
from ensue.report.figure import Figure

T = TypeVar("T")
_AT_ONCE = 500  # SQLite takes no more than so many values in one statement


@dataclass(frozen=True)
class Shown:
    """A board as it is shown: its columns, and its rows in the order of their ranks."""

    board: Board
    main: Column  # what systems are ranked by
    columns: list[Column]  # of its tasks
    rows: list[Row]
    mark: tuple[Any, ...]  # the same as long as everything shown is
    on: date | None = None  # the day at whose end it stood so; None is now
    regrading: Regrading | None = None  # the last time that everything was graded again, by then
    withdrawn: int = 0  # stood there on that day, and was withdrawn since
    made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    making: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    @cached_property
    def covers(self) -> list[tuple[str, str]]:
        """Return the tasks whose data are partial or surrogate, with what is said of each."""
        return covers([self.main, *self.columns])

    @cached_property
    def entries(self) -> list[Entry]:
        return [row.entry for row in self.rows]

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """Return what is made of this board, made when it is first asked for; it goes when the board changes."""
        if key not in self.made:
            with self.making:
                if key not in self.made:
                    self.made[key] = make()
        found: T = self.made[key]
        return found


class _Kept(NamedTuple):
    shown: Shown
    version: int  # of the database, when it was last seen to be as it is


class _Figures(NamedTuple):
    score: Figure | None
    figures: tuple[Figure | None, ...]
    covers: str
    graded_at: datetime
    labels_version: int


class _Read(NamedTuple):
    entries: list[Entry]
    regrading: Regrading | None
    withdrawn: int


def board_columns(connection: Connection, board_id: str) -> tuple[Column, list[Column]]:
    """Return the column that systems are ranked by, and the others in the order they are shown."""
    wanted = [board_tasks.c[name] for name in ("is_main", *Column._fields)]
    query = select(*wanted).where(board_tasks.c.board_id == board_id).order_by(board_tasks.c.place)
    main, others = Column("", "score"), []
    for is_main, *facts in connection.execute(query):
        if is_main:
            main = Column(*facts)
        else:
            others.append(Column(*facts))
    return main, others


class Reader:
    """Boards as everybody may see them."""

    _MOST_BOARDS, _MOST_PAST, _MOST_GRADINGS = 24, 12, 20_000

    def __init__(self, boards: Boards) -> None:
        self.boards = boards
        self._lock, self._building = threading.Lock(), threading.Lock()
        self._boards: OrderedDict[tuple[str, date | None], _Kept] = OrderedDict()
        self._past: OrderedDict[tuple[str, date | None], _Kept] = OrderedDict()
        self._listed: tuple[int, list[str]] = (-1, [])
        self._gradings: OrderedDict[tuple[int, tuple[Any, ...]], _Figures] = OrderedDict()

    def show(self, name: str, on: date | None = None) -> Shown:
        """Return a board as it is, or as it was at the end of a day (UTC)."""
        version = (
            self.boards.database.version
        )  # before anything is read: what is written from here on is newer
        if (kept := self._kept(name, on)) is not None and kept.version == version:
            return kept.shown
        with self.boards.database.reading() as connection:
            return self._read(connection, name, on, version)

    def listed(self) -> list[Shown]:
        """Return the boards that are listed, by name."""
        version = self.boards.database.version
        if self._listed[0] != version:
            with self.boards.database.reading() as connection:
                names = [board.name for board in self.boards.all(connection, listed=True)]
            self._listed = (version, names)
        return [self.show(name) for name in self._listed[1]]

    def _read(self, connection: Connection, name: str, on: date | None, version: int) -> Shown:
        board = self.boards.find(connection, name)
        main, columns = board_columns(connection, board.id)
        mark = (*board, main, *columns, *_changes(connection, board.id))
        if (shown := self._kept_as(name, on, mark, version)) is not None:
            return shown
        # Whoever asks for the same meanwhile waits for it instead of reading it, too.
        with self._building:
            if (shown := self._kept_as(name, on, mark, version)) is None:
                read = self._entries(connection, board, [main, *columns], on)
                rows = standing(read.entries)
                shown = Shown(board, main, columns, rows, mark, on, read.regrading, read.withdrawn)
                self._keep(name, on, _Kept(shown, version))
            return shown

    def _kept(self, name: str, on: date | None) -> _Kept | None:
        with self._lock:
            return (self._boards if on is None else self._past).get((name, on))

    def _kept_as(self, name: str, on: date | None, mark: tuple[Any, ...], version: int) -> Shown | None:
        """Return a board that is kept and still as it was; it need not be looked at again before the next version."""
        kept = self._kept(name, on)
        if kept is None or kept.shown.mark != mark:
            return None
        self._keep(name, on, _Kept(kept.shown, version))
        return kept.shown

    def _keep(self, name: str, on: date | None, kept: _Kept) -> None:
        boards, most = (self._boards, self._MOST_BOARDS) if on is None else (self._past, self._MOST_PAST)
        with self._lock:
            _keep(boards, (name, on), kept, most)

    def _entries(
        self, connection: Connection, board: Board, columns: Sequence[Column], on: date | None
    ) -> _Read:
        end = None if on is None else end_of(on)
        latest, failed = _latest(board.id, on), past.failed_since(connection, board.id)
        if end is None:
            then, gone = {}, set(failed)
        else:
            then = past.published_by(connection, board.id, end)
            gone = {id for id, since in failed.items() if since is None or since < end}
        query = select(submissions, latest.c.first, latest.c.number)
        query = query.join(latest, latest.c.submission_id == submissions.c.id)
        rows = connection.execute(query.where(submissions.c.published_at.is_not(None))).mappings().all()
        at = {row["id"]: _published(row, then, end) for row in rows if row["id"] not in gone}
        published = {id: since for id, since in at.items() if since is not None}
        found = [row for row in rows if row["id"] in published]
        figures = self._figures(connection, [row["number"] for row in found], board, columns)
        last = past.last_regrading(connection, board.id, end)
        gradings_of = {
            row["id"]: Graded(row["first"], row["number"], figures[row["number"]].labels_version)
            for row in found
            if row["kind"] == SUBMISSION
        }
        stale = {id for id, graded in gradings_of.items() if last and past.is_under_way(last, graded)}
        entries = [
            entry_of(row, figures[row["number"]], published[row["id"]], is_stale=row["id"] in stale)
            for row in found
        ]
        regrading = last and past.regrading(last, gradings_of.values(), len(gone))
        return _Read(entries, regrading, len(then.keys() - {row["id"] for row in rows}))

    def _figures(
        self, connection: Connection, numbers: Sequence[int], board: Board, columns: Sequence[Column]
    ) -> dict[int, _Figures]:
        place = (board.rounding, *(column.key for column in columns))
        with self._lock:
            found = {
                number: self._gradings[number, place]
                for number in numbers
                if (number, place) in self._gradings
            }
        missing = [number for number in numbers if number not in found]
        told = ("number", "score", "metrics", "covers", "graded_at", "labels_version")
        wanted = [gradings.c[name] for name in told]
        for start in range(0, len(missing), _AT_ONCE):
            some = gradings.c.number.in_(missing[start : start + _AT_ONCE])
            for number, score, metrics, *more in connection.execute(select(*wanted).where(some)):
                rows: dict[tuple[str, str], list[Any]] = {}
                for row in metrics:
                    rows.setdefault((row["task"], row["metric"]), []).append(row)
                main, *figures = (
                    column.find(rows.get((column.task, column.metric), ()), board.rounding)
                    for column in columns
                )
                value = cut(score, board.rounding)
                whole = None if value is None else main or Figure(value)
                found[number] = _Figures(whole, tuple(figures), *more)
        with self._lock:
            for number in missing:
                _keep(self._gradings, (number, place), found[number], self._MOST_GRADINGS)
        return found


# What everybody may see: it is published, and labels that came later did not make it fail.
_STANDS = (submissions.c.published_at.is_not(None), submissions.c.state == "graded")


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


def end_of(day: date) -> datetime:
    """Return the moment at which a day is over, in UTC."""
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def _latest(board_id: str, on: date | None) -> Any:
    """Return the number of the grading that stands (or stood) for each submission of a board."""
    first = func.min(gradings.c.number).label("first")
    query = (
        select(gradings.c.submission_id, func.max(gradings.c.number).label("number"), first)
        .join(submissions, submissions.c.id == gradings.c.submission_id)
        .where(submissions.c.board_id == board_id)
        .group_by(gradings.c.submission_id)
    )
    if on is not None:
        query = query.where(gradings.c.graded_at < end_of(on))
    return query.subquery()


def _changes(connection: Connection, board_id: str) -> tuple[Any, ...]:
    """Return what changes whenever anything that a board shows does."""
    anonymous = func.sum(cast(submissions.c.is_anonymous, Integer))
    newest = (func.max(submissions.c.published_at), func.max(gradings.c.number))
    published = (
        select(func.count(), anonymous, *newest)
        .join(gradings, gradings.c.submission_id == submissions.c.id)
        .where(submissions.c.board_id == board_id, *_STANDS)
    )
    # Two that change places, as it were, leave all those as they are.
    act = select(events.c.number).where(events.c.kind.in_(_ACTS)).order_by(events.c.number.desc()).limit(1)
    return (*connection.execute(published).one(), connection.execute(act).scalar())


_ACTS = (
    past.PUBLISHED,
    past.WITHDRAWN,
    past.REPLACED,
    past.REGRADED,
    "baselines imported",
    "account deleted",
)


def _published(row: RowMapping, then: Mapping[str, datetime], end: datetime | None) -> datetime | None:
    """Return since when a submission was published at a moment (None is now); None where it was not."""
    at: datetime = row["published_at"]
    # It may have been published, withdrawn, and published again since.
    return at if end is None or at < end else then.get(row["id"])


def entry_of(row: RowMapping, figures: _Figures, published_at: datetime, *, is_stale: bool) -> Entry:
    """Return what everybody may see of a submission; of an anonymous one, nothing that says whose it is."""
    hidden = row["is_anonymous"]
    return Entry(
        id=row["id"],
        kind=row["kind"],
        system=row["system"],
        published_at=published_at,
        score=figures.score,
        figures=figures.figures,
        team="anonymous" if hidden else row["team"],
        description=row["description"],
        parameters=row["parameters"],
        sharing=row["sharing"],
        data=row["data"],
        link="" if hidden else row["link"],
        code="" if hidden else row["code"],
        covers=figures.covers,
        graded_at=figures.graded_at,
        labels_version=figures.labels_version,
        is_stale=is_stale,
    )


def read_diagnostics(
    connection: Connection, ids: Sequence[str], digits: int, on: date | None = None
) -> dict[str, dict[Phenomenon, Figure | None]]:
    """Return the diagnostic figures of submissions by their ids, from the grading that stands (or stood)."""
    newest = select(func.max(gradings.c.number)).where(gradings.c.submission_id.in_(ids))
    if on is not None:
        newest = newest.where(gradings.c.graded_at < end_of(on))
    query = select(gradings.c.submission_id, gradings.c.diagnostics).where(
        gradings.c.number.in_(newest.group_by(gradings.c.submission_id))
    )
    return {row[0]: diagnostics(row[1], digits) for row in connection.execute(query)}
