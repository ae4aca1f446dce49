"""What becomes of what a user handed in when the account ends: what was published stays, the rest goes."""

from __future__ import annotations

from sqlalchemy import Connection, delete, select, update

from ensue.platform.database.schema import submissions, uploads, users
from ensue.platform.jobs import Queue


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
