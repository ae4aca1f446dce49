"""Submissions: handed in, checked, counted against the quota, graded as jobs, and private until published.

What is accepted is on the disk and in the database together with its job. The quota is counted in that one writing
transaction: days and months are those of UTC, and what failed, expired or was cancelled does not count. When labels
are replaced every standing submission is graded again; what it had before is its history.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, exists, insert, select, update

from ensue.platform.accounts import User
from ensue.platform.boards import labels
from ensue.platform.boards.board import Board, Boards, opening
from ensue.platform.boards.handed import (
    Facts,
    Handed,
    Kept,
    Problems,
    body_digest,
    file_name,
    idempotency_key,
    receive,
)
from ensue.platform.boards.past import PUBLISHED, REGRADED, REPLACED, WITHDRAWN, newest_grading
from ensue.platform.boards.views import MISSING
from ensue.platform.database.schema import boards as boards_table
from ensue.platform.database.schema import gradings, jobs, new_id, submissions, uploads, users
from ensue.platform.jobs import Job, Kind
from ensue.platform.limits import Limits
from ensue.platform.refusals import Busy, Conflict, Invalid, NotFound, TooMany
from ensue.platform.service import Platform

GRADE = "grade"
CHECKING = Limits(seconds=120, megabytes=3000)
GRADING = Limits(seconds=600, megabytes=3000)
# These give the quota back, unless they were graded before.
VOID = ("failed", "expired", "cancelled")
_REGRADED = "It could not be graded with the board's new labels: "


class Submissions:
    """The submissions of a platform; making it tells the queue how they are graded."""

    def __init__(self, platform: Platform) -> None:
        self.platform, self.database, self.clock = platform, platform.database, platform.clock
        self.queue, self.boards = platform.queue, Boards(platform)
        kind = Kind(
            GRADE,
            "ensue.platform.boards.grading:grade",
            limits=GRADING,
            prepare=self._prepare,
            done=self._graded,
            ended=self._ended,
        )
        self.queue.add_kind(kind)

    # Handing in

    def hand_in(
        self,
        user: User,
        board_name: str,
        file: BinaryIO,
        name: str,
        given: Mapping[str, str],
        key: str | None,
    ) -> str:
        """Check a file and what is said of it, accept it, and return the submission's id.

        The same key again is the same submission, as long as everything else is the same too.
        """
        facts, key = Facts.read(given), idempotency_key(key)
        with self.database.reading() as connection:
            board = self.boards.find(connection, board_name)
        folder = self.platform.home.work_folder(f"upload-{new_id()}")
        try:
            handed = receive(file, folder, file_name(name), self.platform.settings.largest_upload)
            body = body_digest(handed.digest, facts)
            with self.database.reading() as connection:
                if (before := self._of_key(connection, user, board, key, body)) is not None:
                    return before
                if not board.takes_submissions:
                    raise Conflict(_closed(board))
                refuse_beyond(connection, user.id, board, self.clock.now())
            self._check(board, handed)
            with handed.path.open("rb") as checked:
                digest, size = self.platform.home.keep_upload(checked, self.platform.settings.largest_upload)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return self.accept(user, board_name, facts, Kept(handed.name, digest, size), key)

    def _check(self, board: Board, handed: Handed) -> None:
        """Refuse a file with problems; a process of its own looks at it."""
        arguments = {"file": str(handed.path), "name": handed.name, **self._opening(board)}
        outcome = self.platform.run_limited("ensue.platform.boards.grading:check", arguments, CHECKING)
        match outcome.kind:
            case "done" if not outcome.value:
                return
            case "done":
                raise Problems(outcome.value)
            case "refused" | "memory" | "time":
                raise Problems([{"file": handed.name, "line": 0, "problem": str(outcome.value)}])
            case _:
                raise Busy("The file could not be checked on the server; try again in a minute.")

    def accept(self, user: User, board_name: str, facts: Facts, file: Kept, key: str | None = None) -> str:
        """Accept a file that was checked and lies among the uploads, and return the submission's id."""
        with self.database.writing() as connection:
            return self._accept(connection, user, board_name, facts, file, key)

    def _accept(
        self, connection: Connection, user: User, board_name: str, facts: Facts, file: Kept, key: str | None
    ) -> str:
        body = body_digest(file.digest, facts)
        # All that one user does at once waits here, so that the quota is counted by one at a time.
        held = select(users.c.id).where(users.c.id == user.id, users.c.deleted_at.is_(None))
        if connection.execute(held.with_for_update(key_share=True)).first() is None:
            raise NotFound("The account is gone.")
        board = self.boards.find(connection, board_name)
        if (before := self._of_key(connection, user, board, key, body)) is not None:
            return before
        if not board.takes_submissions:
            raise Conflict(_closed(board))
        refuse_beyond(connection, user.id, board, self.clock.now())
        now, submission_id, upload_id = self.clock.now(), new_id(), new_id()
        connection.execute(
            insert(uploads).values(id=upload_id, user_id=user.id, created_at=now, **file._asdict())
        )
        job_id = self.queue.add(connection, GRADE, subject=submission_id)
        row = {
            **facts._asdict(),
            "team": facts.team or user.affiliation or user.name,
            "id": submission_id,
            "board_id": board.id,
            "user_id": user.id,
            "upload_id": upload_id,
            "kind": "submission",
            "state": "queued",
            "job_id": job_id,
            "idempotency_key": key,
            "body_digest": body,
            "created_at": now,
        }
        connection.execute(insert(submissions).values(**row))
        self._record(connection, "submission accepted", submission_id, user.id, board=board.name)
        return submission_id

    def _of_key(
        self, connection: Connection, user: User, board: Board, key: str | None, body: str
    ) -> str | None:
        """Return the submission that came with a key before, None where none did."""
        if key is None:
            return None
        same = (submissions.c.user_id == user.id, submissions.c.board_id == board.id)
        query = select(submissions.c.id, submissions.c.body_digest)
        row = connection.execute(query.where(*same, submissions.c.idempotency_key == key)).first()
        if row is None:
            return None
        if row.body_digest != body:
            raise Invalid("This Idempotency-Key came with another submission before; use a new one.")
        return str(row.id)

    def quota(self, connection: Connection, user_id: str, board: Board) -> Quota:
        """Return what a user has used of a board's quota today and this month."""
        return quota_used(connection, user_id, board, self.clock.now())

    # Grading, as the queue calls it

    def _opening(self, board: Board) -> dict[str, Any]:
        assert board.labels_digest is not None
        folder = labels.folder_of(self.platform.home, board.id, board.labels_digest)
        return {"folder": str(folder), **opening(board.suite, board.split, board.definition)}

    def _prepare(self, connection: Connection, job: Job) -> dict[str, Any]:
        query = select(submissions.c.board_id, uploads.c.digest, uploads.c.name)
        joined = query.join(uploads, uploads.c.id == submissions.c.upload_id)
        row = connection.execute(joined.where(submissions.c.id == job.subject)).first()
        if row is None:
            raise NotFound("The submission is gone.")
        board = self.boards.get(connection, row.board_id)
        file = self.platform.home.upload(row.digest)
        return {
            "file": str(file),
            "name": row.name,
            "labels_version": board.labels_version,
            **self._opening(board),
        }

    def _graded(self, connection: Connection, job: Job, result: Mapping[str, Any]) -> None:
        """Record a grading; where the labels were replaced meanwhile, have it done again."""
        found = select(submissions.c.board_id).where(submissions.c.id == job.subject)
        board_id = connection.execute(found).scalar()
        if board_id is None:
            return
        # Locked, so that whoever replaces labels either sees this grading or is seen here.
        board = self.boards.get(connection, board_id, locked=True)
        row = {
            key: result[key] for key in ("score", "metrics", "diagnostics", "notes", "not_scored", "covers")
        }
        row |= {key: result[key] for key in ("labels_version", "version")}
        connection.execute(
            insert(gradings).values(
                **row, submission_id=job.subject, job_id=job.id, graded_at=self.clock.now()
            )
        )
        self._set(connection, job.subject, state="graded", reason=None)
        if result["labels_version"] != board.labels_version:
            self._queue_again(connection, [str(job.subject)])

    def _ended(self, connection: Connection, job: Job, state: str, reason: str) -> None:
        """Say of a submission why it was not graded; one that stood and cannot be graded again stands no more."""
        stood = select(gradings.c.number).where(gradings.c.submission_id == job.subject).limit(1)
        if connection.execute(stood).first() is not None:
            state, reason = "failed", f"{_REGRADED}{reason}"
        self._set(connection, job.subject, state=state, reason=reason)

    def _set(self, connection: Connection, submission_id: str | None, **values: Any) -> None:
        connection.execute(update(submissions).where(submissions.c.id == submission_id).values(**values))

    def replace_labels(self, name: str, given: Path, *, by: str | None = None) -> dict[str, Any]:
        """Give a board other labels, or its first; every standing submission is graded again."""
        with self.database.reading() as connection:
            board = self.boards.find(connection, name)
        toml = board.definition.get("toml")
        with labels.copied(self.platform.home, board.id, given, toml) as copy:
            found = self.boards.described(copy, given, board.suite, board.split, board.definition)
            digest = labels.keep(copy)
        with self.database.writing() as connection:
            board = self.boards.get(connection, board.id, locked=True)
            if board.labels_digest == digest:
                return {"board": name, "labels_version": board.labels_version, "regraded": 0}
            version = board.labels_version + 1
            row = {"labels_version": version, "labels_digest": digest, "labels_at": self.clock.now()}
            row["definition"] = board.definition | {"suffix": found["suffix"]}
            if not board.labels_version:
                row["is_open"] = True
            connection.execute(update(boards_table).where(boards_table.c.id == board.id).values(**row))
            self.boards.set_columns(connection, board.id, found["columns"])
            told = {"version": version, "after": newest_grading(connection)}
            count = self._regrade(connection, board.id)
            self._record(connection, REPLACED, board.id, by, regraded=count, **told)
        return {"board": name, "labels_version": version, "regraded": count}

    def regrade(self, name: str, *, by: str | None = None) -> dict[str, Any]:
        """Grade again, with the labels as they are, all that was graded and that no job is about to grade."""
        with self.database.writing() as connection:
            board = self.boards.find(connection, name, locked=True)
            told = {"version": board.labels_version, "after": newest_grading(connection)}
            count = self._regrade(connection, board.id)
            self._record(connection, REGRADED, board.id, by, regraded=count, **told)
        return {"board": name, "labels_version": board.labels_version, "regraded": count}

    def _regrade(self, connection: Connection, board_id: str) -> int:
        """Queue all that was ever graded on a board and that no job is about to grade."""
        was_graded = submissions.c.id.in_(select(gradings.c.submission_id))
        waiting = select(jobs.c.subject).where(jobs.c.kind == GRADE, jobs.c.state.in_(("queued", "running")))
        mine = (submissions.c.board_id == board_id, submissions.c.kind == "submission")
        query = select(submissions.c.id).where(*mine, was_graded, submissions.c.id.not_in(waiting))
        found = list(connection.execute(query.order_by(submissions.c.created_at)).scalars())
        self._queue_again(connection, found)
        return len(found)

    def _queue_again(self, connection: Connection, found: Sequence[str]) -> None:
        for submission_id in found:
            job_id = self.queue.add(connection, GRADE, subject=submission_id)
            self._set(connection, submission_id, job_id=job_id)

    # What its owner does with it

    def publish(self, user: User, submission_id: str, *, anonymous: bool) -> None:
        """Put a graded submission on its board."""
        with self.database.writing() as connection:
            row = self._own(connection, user, submission_id)
            if row.state != "graded":
                raise Conflict(f"Only what is graded can be published; this is {row.state}.")
            now = row.published_at or self.clock.now()
            self._set(connection, submission_id, published_at=now, is_anonymous=anonymous)
            told = {"anonymous": anonymous, "board": row.board_id}
            self._record(connection, PUBLISHED, submission_id, user.id, **told)

    def withdraw(self, user: User, submission_id: str) -> None:
        """Take a submission off its board; its owner keeps seeing it."""
        with self.database.writing() as connection:
            row = self._own(connection, user, submission_id)
            if row.published_at is None:
                raise Conflict("This submission is not published.")
            self._set(connection, submission_id, published_at=None)
            self._record(connection, WITHDRAWN, submission_id, user.id, board=row.board_id)

    def cancel(self, user: User, submission_id: str) -> None:
        """Stop a submission that is not graded yet; the quota has it back."""
        with self.database.writing() as connection:
            # The job before the submission, the order in which a worker takes them.
            row = self._own(connection, user, submission_id, locked=False)
            first = row.state == "queued" and row.job_id is not None
            if not first or not self.queue.cancel(connection, row.job_id, "Its owner cancelled it."):
                raise Conflict("Only what waits or is being graded for the first time can be cancelled.")
            self._record(connection, "submission cancelled", submission_id, user.id)

    def _own(
        self, connection: Connection, user: User, submission_id: str, *, locked: bool = True
    ) -> Row[Any]:
        mine = (submissions.c.id == submission_id) & (submissions.c.user_id == user.id)
        query = select(submissions).where(mine, submissions.c.kind == "submission")
        row = connection.execute(query.with_for_update(key_share=True) if locked else query).first()
        if row is None:
            raise NotFound(MISSING)
        return row

    def _record(
        self, connection: Connection, kind: str, subject: str, user: str | None, **details: Any
    ) -> None:
        self.platform.accounts.record(connection, kind, user=user, subject=subject, **details)


def _closed(board: Board) -> str:
    if not board.labels_version:
        return f"{board.name} takes no submissions: its organiser has not given labels."
    return f"{board.name} is closed for submissions."


class Quota(NamedTuple):
    """How much of a board's quota a user has used; `retry_at` where none is left."""

    day: int
    month: int
    retry_at: datetime | None


def quota_used(connection: Connection, user_id: str, board: Board, now: datetime) -> Quota:
    """Return what a user has used of a board's quota, in this day and month of UTC."""
    day = _midnight(now)
    counted = (
        submissions.c.board_id == board.id,
        submissions.c.user_id == user_id,
        submissions.c.kind == "submission",
        # Whose scores were seen once was used, whatever became of it when labels were replaced.
        submissions.c.state.not_in(VOID) | _graded(),
        # No end: where the clock was set back, what seems to come later still counts.
        submissions.c.created_at >= day.replace(day=1),
    )
    times = list(connection.execute(select(submissions.c.created_at).where(*counted)).scalars())
    times.sort()
    today = [time for time in times if time >= day]
    until = []
    # Until one fewer than are allowed come later.
    if len(today) >= board.quota_day:
        until.append(_midnight(today[-board.quota_day]) + timedelta(days=1))
    if len(times) >= board.quota_month:
        until.append(_next_month(times[-board.quota_month]))
    return Quota(len(today), len(times), max(until, default=None))


def _graded() -> ColumnElement[bool]:
    return exists().where(gradings.c.submission_id == submissions.c.id)


def refuse_beyond(connection: Connection, user_id: str, board: Board, now: datetime) -> None:
    """Refuse where the quota is spent."""
    used = quota_used(connection, user_id, board, now)
    if used.retry_at is None:
        return
    day_spent = used.day >= board.quota_day
    spent = f"{board.quota_day} a day" if day_spent else f"{board.quota_month} a month"
    raise TooMany(
        f"The quota of {board.name} is spent ({spent}, in UTC); the next is taken from"
        f" {used.retry_at:%Y-%m-%d %H:%M} UTC.",
        used.retry_at,
    )


def _midnight(time: datetime) -> datetime:
    return time.replace(hour=0, minute=0, second=0, microsecond=0)


def _next_month(time: datetime) -> datetime:
    first = _midnight(time).replace(day=1)
    return (first + timedelta(days=32)).replace(day=1)
