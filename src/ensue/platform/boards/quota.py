"""The quota of a board: how much a user may hand in a day and a month, both in UTC.

It is exact where it is counted in the writing transaction that accepts, while the user's row is locked.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, exists, select

from ensue.platform.boards.board import Board
from ensue.platform.database.schema import gradings, submissions
from ensue.platform.refusals import TooMany

# These give the quota back, unless they were graded before.
VOID = ("failed", "expired", "cancelled")


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
