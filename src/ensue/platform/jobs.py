"""The queue of jobs: a table with leases, so that a job is done once however often servers and workers are killed.

A worker claims the oldest queued job and is given a lease, a token that it extends by heartbeats. Only who holds the
lease can end the job. A lease that runs out, or whose server starts anew, puts the job back in the queue; after
`ATTEMPTS` beginnings it fails with a reason. What else changes when a job ends (a submission's state, its scores) is
changed by its kind in the same transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, insert, select, update

from ensue.platform.clock import Clock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import jobs, new_id
from ensue.platform.limits import Limits
from ensue.platform.refusals import NotFound

ATTEMPTS = 10
LEASE = timedelta(seconds=60)


class Job(NamedTuple):
    """A row of the queue."""

    number: int
    id: str
    kind: str
    subject: str | None
    arguments: dict[str, Any]
    state: str
    reason: str | None
    attempts: int
    lease: str | None
    lease_until: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


_COLUMNS = tuple(jobs.c[name] for name in Job._fields)


def _same(connection: Connection, job: Job) -> dict[str, Any]:
    return job.arguments


def _nothing(connection: Connection, job: Job, *_: Any) -> None:
    return None


@dataclass(frozen=True)
class Kind:
    """A kind of job: the function that a process of its own runs, and what is done with how it ends.

    `function` is named as `module:object`, takes what `prepare` returns as keywords and returns JSON. `done` is
    given what it returned, and `ended` the state (failed, expired or cancelled) and the reason, each in the
    transaction that ends the job; `begun` is called in the one that claims it.
    """

    name: str
    function: str
    limits: Limits = field(default_factory=Limits)
    prepare: Callable[[Connection, Job], Mapping[str, Any]] = _same
    begun: Callable[[Connection, Job], None] = _nothing
    done: Callable[[Connection, Job, Any], None] = _nothing
    ended: Callable[[Connection, Job, str, str], None] = _nothing


class Queue:
    """The queue of one database, as the server of one home sees it."""

    def __init__(self, database: Database, clock: Clock, worker: str) -> None:
        self.database, self.clock, self.worker = database, clock, worker
        self.kinds: dict[str, Kind] = {}
        self.added = threading.Event()  # so that an idle worker looks at once

    def add_kind(self, kind: Kind) -> None:
        """Make a kind of job known."""
        self.kinds[kind.name] = kind

    # Whoever wants something done

    def add(
        self,
        connection: Connection,
        kind: str,
        *,
        subject: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        wait: timedelta | None = None,
    ) -> str:
        """Put a job in the queue and return its id; not begun within `wait`, it expires."""
        now = self.clock.now()
        row = {
            "id": new_id(),
            "kind": kind,
            "subject": subject,
            "arguments": dict(arguments or {}),
            "state": "queued",
            "created_at": now,
            "expires_at": now + wait if wait is not None else None,
        }
        connection.execute(insert(jobs).values(**row))
        self.added.set()
        return str(row["id"])

    def find(self, connection: Connection, job_id: str) -> Job:
        """Return a job by its id."""
        row = connection.execute(select(*_COLUMNS).where(jobs.c.id == job_id)).first()
        if row is None:
            raise NotFound("There is no such job.")
        return Job(*row)

    def place(self, connection: Connection, job: Job) -> int | None:
        """Return the place of a job: 1 is next, 0 is being done, None is over."""
        if job.state == "running":
            return 0
        if job.state != "queued":
            return None
        before = (jobs.c.state == "queued") & (jobs.c.number < job.number)
        return 1 + int(connection.execute(select(func.count()).where(before)).scalar_one())

    def cancel(self, connection: Connection, job_id: str, reason: str) -> bool:
        """Cancel a job that is not over; one that runs is stopped at its next heartbeat."""
        job = self._locked(connection, job_id)
        if job is None or job.state not in {"queued", "running"}:
            return False
        self._end(connection, job, "cancelled", reason)
        return True

    # Whoever does it

    def claim(self) -> Job | None:
        """Take the oldest queued job of a kind that is known, with a lease; None where there is none."""
        waiting = (jobs.c.state == "queued", jobs.c.kind.in_(self.kinds))
        with self.database.reading() as connection:
            # Asking does not need the one writer.
            if connection.execute(select(jobs.c.number).where(*waiting).limit(1)).first() is None:
                return None
        with self.database.writing() as connection:
            oldest = select(*_COLUMNS).where(*waiting).order_by(jobs.c.number).limit(1)
            row = connection.execute(oldest.with_for_update(skip_locked=True)).first()
            if row is None:
                return None
            now, job = self.clock.now(), Job(*row)
            leased: dict[str, Any] = {
                "state": "running",
                "attempts": job.attempts + 1,
                "lease": new_id(),
                "lease_until": now + LEASE,
                "started_at": now,
            }
            mine = update(jobs).where(jobs.c.number == job.number)
            connection.execute(mine.values(**leased, worker=self.worker))
            job = job._replace(**leased)
            self.kinds[job.kind].begun(connection, job)
            return job

    def prepare(self, job: Job) -> dict[str, Any]:
        """Return what the process that does a job is given."""
        with self.database.reading() as connection:
            return dict(self.kinds[job.kind].prepare(connection, job))

    def heartbeat(self, job: Job) -> bool:
        """Extend a lease; False where it is lost, so that the work may stop."""
        with self.database.writing() as connection:
            extended = update(jobs).where(jobs.c.number == job.number, jobs.c.lease == job.lease)
            return bool(connection.execute(extended.values(lease_until=self.clock.now() + LEASE)).rowcount)

    def finish(self, job: Job, result: Any) -> bool:
        """Record what a job gave; False, and nothing is recorded, where its lease is lost."""
        with self.database.writing() as connection:
            if not self._holds(connection, job):
                return False
            self._set(connection, job, "graded", None)
            self.kinds[job.kind].done(connection, job, result)
            return True

    def fail(self, job: Job, state: str, reason: str) -> bool:
        """End a job that could not be done, as failed or expired; False where its lease is lost."""
        with self.database.writing() as connection:
            if not self._holds(connection, job):
                return False
            self._end(connection, job, state, reason)
            return True

    def give_back(self, job: Job, why: str) -> bool:
        """Put a job back in the queue, or fail it after its last attempt; False where its lease is lost."""
        with self.database.writing() as connection:
            if not self._holds(connection, job):
                return False
            self._requeue(connection, job, why)
            return True

    def release(self, job: Job) -> bool:
        """Put a job back as if it had not been begun; False where its lease is lost."""
        with self.database.writing() as connection:
            if not self._holds(connection, job):
                return False
            self._requeue(connection, job._replace(attempts=job.attempts - 1), "")
            return True

    # Keeping the queue in order

    def recover(self) -> int:
        """Put back what this home's server was doing when it stopped; return how many. Call it before any claim."""
        with self.database.writing() as connection:
            mine = select(*_COLUMNS).where(jobs.c.state == "running", jobs.c.worker == self.worker)
            found = [Job(*row) for row in connection.execute(mine.with_for_update())]
            for job in found:
                self._requeue(connection, job, "the server stopped while it ran")
            return len(found)

    def reap(self, held: Collection[str] = ()) -> int:
        """Put back jobs whose lease has run out, but not those held here; expire those that waited too long."""
        now = self.clock.now()
        late = (jobs.c.state == "running") & (jobs.c.lease_until < now) & jobs.c.lease.not_in(list(held))
        stale = (jobs.c.state == "queued") & (jobs.c.expires_at < now)
        with self.database.reading() as connection:
            if connection.execute(select(jobs.c.number).where(late | stale).limit(1)).first() is None:
                return 0
        with self.database.writing() as connection:
            query = select(*_COLUMNS).where(late | stale).with_for_update(skip_locked=True)
            found = [Job(*row) for row in connection.execute(query)]
            for job in found:
                if job.state == "running":
                    self._requeue(connection, job, "its worker stopped answering")
                else:
                    self._end(
                        connection, job, "expired", "It waited in the queue too long and was not begun."
                    )
            return len(found)

    def _locked(self, connection: Connection, job_id: str) -> Job | None:
        row = connection.execute(select(*_COLUMNS).where(jobs.c.id == job_id).with_for_update()).first()
        return Job(*row) if row else None

    def _holds(self, connection: Connection, job: Job) -> bool:
        found = self._locked(connection, job.id)
        return found is not None and found.lease is not None and found.lease == job.lease

    def _requeue(self, connection: Connection, job: Job, why: str) -> None:
        if job.attempts >= ATTEMPTS:
            self._end(connection, job, "failed", f"It was begun {job.attempts} times and never ended: {why}.")
            return
        again: dict[str, Any] = {"state": "queued", "attempts": job.attempts, "started_at": None}
        again |= {"lease": None, "lease_until": None, "worker": None}
        connection.execute(update(jobs).where(jobs.c.number == job.number).values(**again))
        self.added.set()

    def _end(self, connection: Connection, job: Job, state: str, reason: str) -> None:
        self._set(connection, job, state, reason)
        if job.kind in self.kinds:
            self.kinds[job.kind].ended(connection, job, state, reason)

    def _set(self, connection: Connection, job: Job, state: str, reason: str | None) -> None:
        over = {"state": state, "reason": reason, "lease": None, "lease_until": None}
        ended = update(jobs).where(jobs.c.number == job.number)
        connection.execute(ended.values(**over, finished_at=self.clock.now()))
