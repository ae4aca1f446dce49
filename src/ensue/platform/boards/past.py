"""What happened to what stands on a board: when it was published and withdrawn, and when everything was graded again.

A board as it stood on a day shows what was published then and still is. What was withdrawn since is counted and not
named; what new labels cannot grade any more is shown until the day on which it failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from ensue.platform.database.schema import events, gradings, jobs, submissions

PUBLISHED, WITHDRAWN = "submission published", "submission withdrawn"
REPLACED, REGRADED = "labels replaced", "regraded"


class Regrading(NamedTuple):
    """The last time that everything on a board was graded again, and how far it is; of published systems alone."""

    at: datetime
    version: int  # of the labels from then on
    has_new_labels: bool
    graded_again: int
    under_way: int
    failed: int  # cannot be graded with the new labels and stand no more


class Graded(NamedTuple):
    """Which gradings a standing submission has: the first, the one that stands, and with which labels that was."""

    first: int
    number: int
    labels_version: int


class _Last(NamedTuple):
    at: datetime
    version: int
    has_new_labels: bool
    after: int  # gradings with higher numbers came later


def newest_grading(connection: Connection) -> int:
    """Return the number of the last grading there is, to be written down where everything is graded again."""
    return int(connection.execute(select(func.max(gradings.c.number))).scalar() or 0)


def last_regrading(connection: Connection, board_id: str, end: datetime | None) -> _Last | None:
    """Return when everything was last graded again; first labels grade nothing again."""
    query = select(events.c.at, events.c.kind, events.c.details)
    here = [events.c.subject == board_id, events.c.kind.in_((REPLACED, REGRADED))]
    if end is not None:
        here.append(events.c.at < end)
    row = connection.execute(query.where(*here).order_by(events.c.number.desc()).limit(1)).first()
    if row is None:
        return None
    version, is_new = int(row.details.get("version", 0)), row.kind == REPLACED
    return (
        None if is_new and version <= 1 else _Last(row.at, version, is_new, int(row.details.get("after", 0)))
    )


def is_under_way(last: _Last, graded: Graded) -> bool:
    """Return whether a submission is yet to be graded again."""
    return graded.number <= last.after or graded.labels_version < last.version


def regrading(last: _Last, standing: Iterable[Graded], failed: int) -> Regrading:
    """Count how far a regrading is."""
    waiting = again = 0
    for graded in standing:
        if is_under_way(last, graded):
            waiting += 1
        elif graded.first <= last.after or (not last.after and graded.first != graded.number):
            again += 1
    return Regrading(last.at, last.version, last.has_new_labels, again, waiting, failed)


def failed_since(connection: Connection, board_id: str) -> dict[str, datetime | None]:
    """Return what is published and cannot be graded with the labels there are now, and since when."""
    query = select(submissions.c.id, jobs.c.finished_at).join(
        jobs, jobs.c.id == submissions.c.job_id, isouter=True
    )
    mine = (submissions.c.board_id == board_id, submissions.c.state == "failed")
    rows = connection.execute(query.where(*mine, submissions.c.published_at.is_not(None)))
    return {row.id: row.finished_at for row in rows}


def published_by(connection: Connection, board_id: str, end: datetime) -> dict[str, datetime]:
    """Return what stood published on a board at a moment, by id, and since when; what is deleted now among it."""
    kinds = events.c.kind.in_((PUBLISHED, WITHDRAWN))
    query = select(events.c.subject, events.c.kind, events.c.at, events.c.details, submissions.c.board_id)
    query = query.join(submissions, submissions.c.id == events.c.subject, isouter=True)
    found: dict[str, datetime] = {}
    for row in connection.execute(query.where(kinds, events.c.at < end).order_by(events.c.number)):
        if (row.board_id or _board_of(row.details)) != board_id:
            continue
        if row.kind == PUBLISHED:
            found.setdefault(
                row.subject, row.at
            )  # once more, with a name or without, is the same publication
        else:
            found.pop(row.subject, None)
    return found


def _board_of(details: dict[str, Any]) -> str:
    """Return the board of a submission that is deleted."""
    return str(details.get("board", ""))
