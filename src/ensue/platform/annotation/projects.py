"""Annotation projects: made of a kind and data, opened, paused and closed, topped up, and deleted."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ensue.benchmarks.people.kind import MOST_LABELS, Kind, kind
from ensue.platform.accounts import User
from ensue.platform.annotation.building import refuse_unwanted
from ensue.platform.database.schema import assignments, events, new_id, project_items, projects
from ensue.platform.limits import Limits
from ensue.platform.refusals import Conflict, Invalid, NotFound, Refusal, line
from ensue.platform.service import Platform

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,59}")
_RESERVED = ("new",)  # what addresses mean otherwise
_BUILDING = Limits(seconds=300, megabytes=3000)
_AT_ONCE = 500
_MADE = "project made"


class Project(NamedTuple):
    """A row of the projects' table."""

    id: str
    name: str
    kind: str
    title: str
    instructions: str
    settings: dict[str, Any]
    source: str
    seed: int
    state: str
    entry_key: str
    owner_id: str | None
    created_at: datetime

    def belongs_to(self, user: User) -> bool:
        """Return whether a user keeps this project: its owner, and every admin."""
        return user.may("admin") or (self.owner_id == user.id and user.may("organiser"))

    @property
    def path(self) -> str:
        """Return the link that people are sent, without the server's name."""
        return f"/annotate/{self.name}?key={self.entry_key}"

    def load_kind(self) -> Kind:
        """Return what judges its answers and makes its later stages."""
        return kind(self.kind)


COLUMNS = tuple(projects.c[name] for name in Project._fields)
# Asked with every request, so put together once.
_BY_NAME = select(*COLUMNS).where(projects.c.name == bindparam("given"))
_BY_ID = select(*COLUMNS).where(projects.c.id == bindparam("given"))


@dataclass(frozen=True)
class Wanted:
    """What an organiser says of a new project; `data` is a path on the server's machine, and so are the `files` that
    settings name, where they lie elsewhere than those say."""

    name: str
    kind: str
    data: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    title: str = ""
    source: str = ""  # what the data are called, where that is not the path
    files: Mapping[str, str] = field(default_factory=dict)


class Projects:
    """The annotation projects of a platform."""

    def __init__(self, platform: Platform) -> None:
        self.platform, self.database = platform, platform.database

    def find(self, connection: Connection, name: str, *, locked: bool = False) -> Project:
        """Return a project by its name; `locked`, nobody else changes it before the transaction ends."""
        return _one(connection, _BY_NAME, name, locked=locked)

    def get(self, connection: Connection, project_id: str, *, locked: bool = False) -> Project:
        """Return a project by its id."""
        return _one(connection, _BY_ID, project_id, locked=locked)

    def all(self, connection: Connection) -> list[Project]:
        """Return every project, by name."""
        return [Project(*row) for row in connection.execute(select(*COLUMNS).order_by(projects.c.name))]

    def notes(self, connection: Connection, project: Project) -> list[str]:
        """Return what there was to say of a project's data when it was made."""
        made = (events.c.kind == _MADE, events.c.subject == project.id)
        details = connection.execute(select(events.c.details).where(*made)).scalar()
        return list((details or {}).get("notes", ()))

    def create(self, wanted: Wanted, *, by: str | None = None) -> tuple[Project, list[str]]:
        """Make a project, a draft that nobody can enter yet; return it and what there is to say of its data."""
        if not _NAME.fullmatch(wanted.name) or wanted.name in _RESERVED:
            raise Invalid(
                f"{wanted.name[:60]!r} cannot be a project's name; use up to 60 letters, digits, - and _."
            )
        with self.database.reading() as connection:
            taken = select(projects.c.id).where(projects.c.name == wanted.name)
            if connection.execute(taken).first() is not None:
                raise _taken(wanted.name)
        refuse_unwanted(wanted.settings)
        given: dict[str, Any] = {"name": wanted.kind, "data": wanted.data, "seed": wanted.seed}
        given |= {"settings": dict(wanted.settings), "files": dict(wanted.files)}
        outcome = self.platform.run_limited("ensue.platform.annotation.building:build", given, _BUILDING)
        if outcome.kind in {"refused", "memory", "time"}:
            raise Invalid(str(outcome.value))
        if outcome.kind != "done":
            raise Refusal(f"The project cannot be made of these data ({outcome.value}).")
        return self.insert(wanted, outcome.value, by=by), list(outcome.value["notes"])

    def insert(self, wanted: Wanted, built: Mapping[str, Any], *, by: str | None = None) -> Project:
        """Add a project that is built."""
        row = {key: built[key] for key in ("instructions", "settings")}
        row["source"] = wanted.source or built["source"]
        row["title"] = line(wanted.title or built["title"], "The title", 200, least=1)
        row |= {"id": new_id(), "name": wanted.name, "kind": wanted.kind, "seed": wanted.seed, "owner_id": by}
        row |= {"entry_key": secrets.token_urlsafe(16), "created_at": self.platform.clock.now()}
        with self.database.writing() as connection:
            try:
                with connection.begin_nested():
                    connection.execute(insert(projects).values(**row, state="draft"))
            except IntegrityError:
                raise _taken(wanted.name) from None
            add_items(connection, row["id"], built["items"])
            notes = list(built.get("notes", ()))
            self._record(connection, _MADE, row["id"], by, of=wanted.kind, notes=notes)
            return self.get(connection, row["id"])

    def set_state(self, name: str, state: str, *, by: str | None = None) -> Project:
        """Open, pause or close a project. Paused, nobody is given anything new; closed, all leases end."""
        if state not in {"open", "paused", "closed"}:
            raise Invalid(f"A project is open, paused or closed, not {state[:40]!r}.")
        with self.database.writing() as connection:
            project = self.find(connection, name, locked=True)
            connection.execute(update(projects).where(projects.c.id == project.id).values(state=state))
            if state == "closed":
                held = (assignments.c.project_id == project.id, assignments.c.state == "leased")
                connection.execute(update(assignments).where(*held).values(state="expired"))
            self._record(connection, "project state", project.id, by, state=state)
            return self.get(connection, project.id)

    def top_up(self, name: str, labels: int, *, by: str | None = None) -> Project:
        """Have each item answered by more people; items that want a number of their own keep it."""
        with self.database.writing() as connection:
            project = self.find(connection, name, locked=True)
            before = int(project.settings["labels"])
            if not before < labels <= MOST_LABELS:
                raise Invalid(f"{name} has {before} labels an item; give a number above it, up to 1,000.")
            settings = project.settings | {"labels": labels}
            connection.execute(update(projects).where(projects.c.id == project.id).values(settings=settings))
            mine = (project_items.c.project_id == project.id, project_items.c.wanted > 0)
            query = select(project_items.c.id, project_items.c.secret).where(*mine)
            plain = [row.id for row in connection.execute(query) if row.secret.get("wanted") is None]
            for start in range(0, len(plain), _AT_ONCE):
                some = project_items.c.id.in_(plain[start : start + _AT_ONCE])
                connection.execute(update(project_items).where(some).values(wanted=labels))
            self._record(connection, "project topped up", project.id, by, labels=labels)
            return self.get(connection, project.id)

    def delete(self, name: str, *, by: str | None = None) -> None:
        """Delete a project with everybody's answers."""
        with self.database.writing() as connection:
            project = self.find(connection, name, locked=True)
            connection.execute(delete(projects).where(projects.c.id == project.id))
            self._record(connection, "project deleted", project.id, by)
        self.database.drop_deleted()

    def _record(
        self, connection: Connection, what: str, project_id: str, by: str | None, **details: Any
    ) -> None:
        self.platform.accounts.record(connection, what, user=by, subject=project_id, **details)


def add_items(connection: Connection, project_id: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """Add items to a project behind those it has, but for work whose key has an `id` that is there already."""
    mine = project_items.c.project_id == project_id
    last = connection.execute(select(func.max(project_items.c.position)).where(mine)).scalar()
    position = -1 if last is None else int(last)
    known: set[str] = set()
    if last is not None:
        known = {
            str(secret["key"].get("id"))
            for secret in connection.execute(select(project_items.c.secret).where(mine)).scalars()
        }
    made = []
    for row in rows:
        id = row["secret"]["key"].get("id")
        if id is not None and str(id) in known:
            continue
        position += 1
        made.append({**row, "id": new_id(), "project_id": project_id, "position": position})
    for start in range(0, len(made), _AT_ONCE):
        connection.execute(insert(project_items), made[start : start + _AT_ONCE])
    return len(made)


def _one(connection: Connection, query: Select[Any], given: str, *, locked: bool) -> Project:
    # Rows that point to the project may be added meanwhile.
    wanted = query.with_for_update(key_share=True) if locked else query
    row = connection.execute(wanted, {"given": given}).first()
    if row is None:
        raise no_project(given)
    return Project(*row)


def no_project(name: str) -> NotFound:
    """Return what is said of a project that is not there, or is not to be known by whoever asks."""
    return NotFound(f"There is no project {name[:60]!r}.")


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a project called {name} already; choose another name.")
