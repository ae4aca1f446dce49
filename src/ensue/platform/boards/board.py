"""Boards: made of a suite or a board.toml, with labels or without (to show baselines); opened, closed, changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ensue.errors import EnsueError
from ensue.jsonl import parse_toml
from ensue.platform.accounts import User
from ensue.platform.boards import labels
from ensue.platform.database.schema import board_tasks, boards, gradings, new_id, submissions
from ensue.platform.limits import Limits
from ensue.platform.refusals import Conflict, Forbidden, Invalid, NotFound, Refusal, line, prose
from ensue.platform.service import Platform
from ensue.version import __version__

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_RESERVED = ("new",)  # what addresses mean otherwise
# Reading a whole suite takes some hundred megabytes; who opens a board has time.
OPENING = Limits(seconds=300, megabytes=3000)
_MOST = {"rounding": 6, "quota_day": 10_000, "quota_month": 100_000}
_LEAST = {"rounding": 1, "quota_day": 1, "quota_month": 1}


class Board(NamedTuple):
    """A row of the boards' table."""

    id: str
    name: str
    title: str
    about: str
    suite: str | None
    definition: dict[str, Any]
    split: str
    rounding: int
    quota_day: int
    quota_month: int
    is_open: bool
    is_listed: bool
    labels_version: int
    labels_digest: str | None
    labels_at: datetime | None
    created_at: datetime
    created_by: str | None = None

    @property
    def takes_submissions(self) -> bool:
        """Return whether something can be handed in: it is open and has labels."""
        return self.is_open and self.labels_version > 0

    @property
    def suffix(self) -> str:
        """Return what the name of a file handed in ends in."""
        return str(self.definition.get("suffix", ""))


_COLUMNS = tuple(boards.c[name] for name in Board._fields)


@dataclass(frozen=True)
class Wanted:
    """What an organiser says of a new board: `suite`, or the contents of a board.toml as `toml`."""

    name: str
    suite: str | None = None
    toml: str | None = None
    split: str | None = None  # the one that the suite or the board.toml names
    tasks: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    title: str = ""
    about: str = ""
    rounding: int = 3
    quota_day: int = 2
    quota_month: int = 6

    @property
    def definition(self) -> dict[str, Any]:
        """Return what is kept of it, to open the board again with other labels."""
        options = {"tasks": list(self.tasks), "settings": dict(self.settings), "partial": self.partial}
        return options | ({"toml": self.toml} if self.toml is not None else {})


class Boards:
    """The boards of a platform."""

    def __init__(self, platform: Platform) -> None:
        self.platform, self.database = platform, platform.database

    # Reading

    def find(self, connection: Connection, name: str, *, locked: bool = False) -> Board:
        """Return a board by its name; `locked`, nobody else changes it before the transaction ends."""
        return self._one(connection, boards.c.name == name, locked=locked)

    def get(self, connection: Connection, board_id: str, *, locked: bool = False) -> Board:
        """Return a board by its id."""
        return self._one(connection, boards.c.id == board_id, locked=locked)

    def _one(self, connection: Connection, where: Any, *, locked: bool) -> Board:
        query = select(*_COLUMNS).where(where)
        # Rows that point to the board may be added meanwhile.
        row = connection.execute(query.with_for_update(key_share=True) if locked else query).first()
        if row is None:
            raise NotFound("There is no such board.")
        return Board(*row)

    def all(self, connection: Connection, *, listed: bool = False) -> list[Board]:
        """Return every board, or those that are listed, by name."""
        query = select(*_COLUMNS).order_by(boards.c.name)
        return [
            Board(*row) for row in connection.execute(query.where(boards.c.is_listed) if listed else query)
        ]

    def kept_by(self, connection: Connection, user: User) -> list[Board]:
        """Return the boards that a user may change: an organiser those they made, an admin all."""
        return [board for board in self.all(connection) if may_change(user, board)]

    def find_kept(self, connection: Connection, user: User, name: str) -> Board:
        """Return a board that a user may change."""
        board = self.find(connection, name)
        if not may_change(user, board):
            raise Forbidden("Only who made this board, or an admin, may do this.")
        return board

    # Making and changing

    def create(self, wanted: Wanted, folder: Path | None, *, by: str | None = None) -> Board:
        """Make a board with the labels in a folder. One that came without labels and has the name is taken over."""
        values = _checked(wanted)
        with self.database.reading() as connection:
            before = self._replaceable(connection, wanted.name)
        board_id = before.id if before else new_id()
        if before is not None and before.suite == wanted.suite:
            values |= {key: getattr(before, key) for key in ("title", "about") if not getattr(wanted, key)}
        row = {**values, "suite": wanted.suite}
        if folder is None:
            raise Invalid("A board needs labels; name their folder with --labels.")
        with labels.copied(self.platform.home, board_id, folder, wanted.toml) as copy:
            found = self.described(copy, folder, wanted.suite, wanted.split, wanted.definition)
            row |= {"split": found["split"], "definition": wanted.definition | {"suffix": found["suffix"]}}
            digest, now = labels.keep(copy), self.platform.clock.now()
            row |= {"labels_version": 1, "labels_digest": digest, "labels_at": now, "is_open": True}
        with self.database.writing() as connection:
            if before is None:
                self._insert(connection, {**row, "id": board_id, "created_at": now, "created_by": by})
            else:
                self._replaceable(connection, wanted.name, locked=True)
                values = {**row, "created_by": by}
                connection.execute(update(boards).where(boards.c.id == board_id).values(**values))
                if (before.suite, before.split) != (row["suite"], row["split"]):
                    # Figures on other data say nothing here.
                    connection.execute(delete(submissions).where(submissions.c.board_id == board_id))
            self.set_columns(connection, board_id, found["columns"])
            self._record(connection, "board made", board_id, by, name=wanted.name)
            return self.get(connection, board_id)

    def described(
        self, copy: Path, given: Path, suite: str | None, split: str | None, definition: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Open a board with labels in a process of its own and return its columns; refuse labels that will not do."""
        options = opening(suite, split, definition)
        arguments = {"folder": str(copy), "given": str(given), **options}
        outcome = self.platform.run_limited("ensue.platform.boards.grading:describe", arguments, OPENING)
        if outcome.kind == "done":
            return dict(outcome.value)
        if outcome.kind in {"refused", "memory", "time"}:
            raise Invalid(str(outcome.value))
        raise Refusal(f"The board cannot be opened with these labels ({outcome.value}).")

    def insert_bundled(
        self, connection: Connection, values: Mapping[str, Any], columns: Sequence[Mapping[str, Any]]
    ) -> str:
        """Add a board without labels, to show baselines on, and return its id."""
        row = {**values, "id": new_id(), "created_at": self.platform.clock.now(), "is_open": False}
        self._insert(connection, row)
        self.set_columns(connection, row["id"], columns)
        return str(row["id"])

    def change(self, name: str, values: Mapping[str, Any], *, by: str | None = None) -> Board:
        """Change a board's title, description, quotas, rounding, or whether it is open and listed."""
        found = {key: _value(key, value) for key, value in values.items() if value is not None}
        with self.database.writing() as connection:
            board = self.find(connection, name, locked=True)
            if found.get("is_open") and not board.labels_version:
                raise Conflict(f"{name} has no labels; give them first (ensue board labels {name} DIR).")
            if found:
                connection.execute(update(boards).where(boards.c.id == board.id).values(**found))
                self._record(connection, "board changed", board.id, by, **found)
            return self.get(connection, board.id)

    def _replaceable(self, connection: Connection, name: str, *, locked: bool = False) -> Board | None:
        """Return the board of a name that nobody has given labels or handed anything in to; None where none is."""
        try:
            found = self.find(connection, name, locked=locked)
        except NotFound:
            return None
        handed_in = (submissions.c.board_id == found.id) & (submissions.c.kind == "submission")
        if found.labels_version or connection.execute(select(submissions.c.id).where(handed_in)).first():
            raise Conflict(f"There is a board called {name} already; choose another name.")
        return found

    def _insert(self, connection: Connection, row: Mapping[str, Any]) -> None:
        try:
            with connection.begin_nested():
                connection.execute(insert(boards).values(**row))
        except IntegrityError:
            raise Conflict(f"There is a board called {row['name']} already; choose another name.") from None

    def set_columns(
        self, connection: Connection, board_id: str, columns: Sequence[Mapping[str, Any]]
    ) -> None:
        connection.execute(delete(board_tasks).where(board_tasks.c.board_id == board_id))
        for place, column in enumerate(columns):
            row = {"board_id": board_id, "place": place, "is_main": bool(column.get("main"))}
            given = ("task", "metric", "settings", "title", "covers")
            connection.execute(
                insert(board_tasks).values(**row, **{key: column[key] for key in given if key in column})
            )
        self._order_baselines(connection, board_id)

    def main_column(self, connection: Connection, board_id: str) -> dict[str, Any]:
        """Return the column that systems are ordered by."""
        here = (board_tasks.c.board_id == board_id, board_tasks.c.is_main)
        row = connection.execute(select(board_tasks).where(*here)).one()
        return {"task": row.task, "metric": row.metric, "settings": row.settings}

    def _order_baselines(self, connection: Connection, board_id: str) -> None:
        """Give baselines the score of the main column as it is now."""
        main = self.main_column(connection, board_id)
        latest = select(func.max(gradings.c.number)).group_by(gradings.c.submission_id)
        joined = select(gradings).join(submissions, submissions.c.id == gradings.c.submission_id)
        here = (submissions.c.board_id == board_id, submissions.c.kind != "submission")
        for row in connection.execute(joined.where(*here, gradings.c.number.in_(latest))).mappings().all():
            score = next((one["value"] for one in row["metrics"] if fits(one, main)), None)
            if score != row["score"]:
                figures = {"metrics": row["metrics"], "diagnostics": row["diagnostics"], "score": score}
                self.grade_baseline(connection, row["submission_id"], figures, self.platform.clock.now())

    def grade_baseline(
        self, connection: Connection, submission_id: str, figures: Mapping[str, Any], at: datetime
    ) -> None:
        """Give a baseline its figures."""
        more = {"labels_version": 0, "notes": [], "version": __version__, "graded_at": at}
        connection.execute(insert(gradings).values(submission_id=submission_id, **figures, **more))

    def _record(
        self, connection: Connection, kind: str, board_id: str, by: str | None, **details: Any
    ) -> None:
        self.platform.accounts.record(connection, kind, user=by, subject=board_id, **details)


def may_change(user: User, board: Board) -> bool:
    """Return whether a user is a board's organiser, or an admin."""
    return user.may("admin") or (user.may("organiser") and board.created_by == user.id)


def fits(row: Mapping[str, Any], column: Mapping[str, Any]) -> bool:
    """Return whether a metric row belongs into a column."""
    same = (row["task"], row["metric"]) == (column["task"], column["metric"])
    return same and all(row["settings"].get(key) == value for key, value in column["settings"].items())


def opening(suite: str | None, split: str | None, definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a process needs to open a board, but for the folder of its labels."""
    options = {key: definition[key] for key in ("tasks", "settings", "partial") if key in definition}
    return {"suite": suite, "split": split, **options}


def _checked(wanted: Wanted) -> dict[str, Any]:
    if not _NAME.fullmatch(wanted.name) or wanted.name in _RESERVED:
        raise Invalid(
            f"{wanted.name[:60]!r} cannot name a board; use up to 60 letters, digits, hyphens and underscores."
        )
    if (wanted.suite is None) == (wanted.toml is None):
        raise Invalid("A board is made of a suite or of a board.toml; name one of them (--suite, --board).")
    said: dict[str, Any] = {}
    if wanted.toml is not None:
        try:
            said = parse_toml(wanted.toml, "The board.toml")
        except EnsueError as error:
            raise Invalid(str(error)) from None
    title, about = (str(said.get(key, "")) for key in ("name", "about"))
    values = {"title": wanted.title or title or wanted.name, "about": wanted.about or about}
    values |= {key: getattr(wanted, key) for key in _MOST}
    return {"name": wanted.name} | {key: _value(key, value) for key, value in values.items()}


def _value(key: str, value: Any) -> Any:
    match key:
        case "title":
            return line(value, "The title", 200, least=1)
        case "about":
            return prose(value, "The description", 20_000)
        case "is_open" | "is_listed":
            return bool(value)
        case _:
            words = key.replace("_", " a ")
            if not _LEAST[key] <= int(value) <= _MOST[key]:
                raise Invalid(f"The {words} is {value}; it may be {_LEAST[key]} to {_MOST[key]:,}.")
            return int(value)
