"""A platform that is open: its home, database, accounts and jobs, held together for pages, API and commands."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from ensue.errors import EnsueError, RunFailed
from ensue.platform.accounts import Accounts
from ensue.platform.clock import Clock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import events, new_id, submissions, uploads, users
from ensue.platform.home import Home, InUse
from ensue.platform.jobs import Queue
from ensue.platform.limits import Limits, Outcome, run_limited
from ensue.platform.refusals import Busy
from ensue.platform.worker import Worker

# How many may wait at once for a file to be looked at; each keeps a thread of the server.
CHECKS_WAITING = 80

# A command that changes things: the platform and its arguments to an answer, both of JSON.
Command = Callable[["Platform", dict[str, Any]], dict[str, Any]]


def default_home() -> Path:
    """Return the home used where none is named: `ensue` in the user's data folder."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ensue"


@dataclass(frozen=True)
class Settings:
    """What whoever runs a platform decides."""

    home: Path = field(default_factory=default_home)
    database: str | None = None  # an address; a file in the home by default
    public_url: str = ""  # what users type, where a proxy stands before the server
    open_sign_up: bool = True  # otherwise by invitation alone
    jobs_at_once: int = 1
    checks_at_once: int = 2  # files looked at before they are taken
    largest_upload: int = 200_000_000  # bytes
    clock: Clock = field(default_factory=Clock)


class Platform:
    """Everything of one platform. Open it with `opened`, which holds the home's lock."""

    def __init__(self, settings: Settings, home: Home, database: Database) -> None:
        self.settings, self.home, self.database = settings, home, database
        self.clock = settings.clock
        self.home_key = home.key()
        self.accounts = Accounts(database, self.clock)
        self.queue = Queue(database, self.clock, home.id)
        self.accounts.on_deletion.append(partial(forget, self.queue))
        self.worker: Worker | None = None
        self.at_start: list[Callable[[], None]] = []  # what parts do before jobs are run
        self.regularly: list[Callable[[], None]] = []  # and every few seconds while jobs are run
        self._checks = threading.Semaphore(settings.checks_at_once)
        self._room = threading.Semaphore(CHECKS_WAITING)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run jobs as long as the block lasts."""
        for part in self.at_start:
            part()
        at_once = self.settings.jobs_at_once
        self.worker = Worker(self.queue, self.home, at_once, self.sweep, self.regularly)
        self.worker.start()
        try:
            yield
        finally:
            self.worker.stop()

    def sweep(self) -> None:
        """Remove what nothing needs any more: files that no upload names."""
        # Those on the disk now: what is handed in from here on is too new to be removed.
        with self.database.reading() as connection:
            named = set(connection.execute(select(uploads.c.digest)).scalars())
        self.home.sweep(named)

    def run_limited(self, function: str, arguments: Mapping[str, Any], limits: Limits) -> Outcome:
        """Run `module:object` in a process of its own while the caller waits, a few at a time."""
        if not self._room.acquire(blocking=False):
            raise Busy("Too many files are being looked at; try again in a minute.")
        try:
            return self._run_limited(function, arguments, limits)
        finally:
            self._room.release()

    def _run_limited(self, function: str, arguments: Mapping[str, Any], limits: Limits) -> Outcome:
        with self._checks:
            folder = self.home.work_folder(f"check-{new_id()}")
            try:
                return run_limited(function, arguments, limits, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(settings: Settings) -> Iterator[Platform]:
    """Open a platform: hold its home, open its database and bring it to today's tables."""
    home = Home(settings.home)
    with home.held():
        database = Database(home.database_url(settings.database))
        try:
            database.hold()
            database.migrate()
            _belong(database, home)
            home.tidy()
            yield Platform(settings, home, database)
        finally:
            database.close()


def _belong(database: Database, home: Home) -> None:
    """Write down whose database this is; refuse another home's, since what was handed in lies in that home."""
    first = select(events.c.subject).where(events.c.kind == "home").order_by(events.c.number).limit(1)
    with database.reading() as connection:
        owner = connection.execute(first).scalar()
    if owner is None:
        with database.writing() as connection:
            row = {"at": datetime.now(UTC), "kind": "home", "subject": home.id, "details": {}}
            connection.execute(insert(events).values(**row))
    elif owner != home.id:
        raise EnsueError(
            f"The database {database} belongs to another home, whose home.json has the id {owner}; open it with that"
            f" --home, or restore a backup into {home.path} and a new database."
        )


def perform(settings: Settings, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Perform a command: by the server that has the home open, or here where none has."""
    from ensue.platform.commands import COMMANDS

    try:
        with opened(settings) as platform:
            return COMMANDS[name](platform, dict(arguments))
    except InUse:
        return _ask_server(Home(settings.home), name, arguments)


def _ask_server(home: Home, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    import httpx

    server = home.server()
    if server is None:
        raise InUse(f"The home {home.path} is in use by another process; try again when it is done.")
    try:
        answer = httpx.post(
            f"{server['url']}/internal/{name}",
            json=dict(arguments),
            headers={"Authorization": f"Home {server['key']}"},
            timeout=600,
            trust_env=False,
        )
        found = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise RunFailed(f"The server of {home.path} does not answer ({type(error).__name__}).") from None
    if answer.status_code != 200:
        raise EnsueError(str(found.get("error", "The server refused.")))
    return dict(found)


def forget(queue: Queue, connection: Connection, user_id: str) -> None:
    """Delete a user's unpublished submissions, cancel their jobs, and take address and name off what was published.

    The files follow when nothing names them any more (`Platform.sweep`). Jobs are locked before submissions, as where
    a grading is recorded, so that the two never wait for each other.
    """
    mine = submissions.c.user_id == user_id
    unpublished = (mine, submissions.c.published_at.is_(None))
    for job in connection.execute(select(submissions.c.job_id).where(*unpublished)).scalars().all():
        if job is not None:
            queue.cancel(connection, job, "Its owner's account was deleted.")
    connection.execute(delete(submissions).where(*unpublished))
    connection.execute(update(submissions).where(mine).values(contact="", idempotency_key=None))
    # Who names no team hands in under the account's name, which goes with it; and whose it is was not published here.
    name = select(users.c.name).where(users.c.id == user_id).scalar_subquery()
    connection.execute(update(submissions).where(mine, submissions.c.team == name).values(team=""))
    hidden = update(submissions).where(mine, submissions.c.is_anonymous)
    connection.execute(hidden.values(team="", link="", code=""))
    used = select(submissions.c.upload_id).where(submissions.c.upload_id.is_not(None))
    connection.execute(delete(uploads).where(uploads.c.user_id == user_id, uploads.c.id.not_in(used)))
