"""What an organiser is told of a board: how much was handed in, what became of it, and what was done to the board."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from ensue.platform.database.schema import events, gradings, jobs, submissions, users

# What the page of a board lists; everything is in its export.
LISTED = 100
_ACTS = {
    "board made": "made",
    "board changed": "changed",
    "labels replaced": "labels given",
    "regraded": "graded again with the labels it has",
    "baselines imported": "baselines imported",
}


class Counts(NamedTuple):
    """How many submissions a board has, by state; `waiting` counts gradings, again or for the first time."""

    submissions: int
    published: int
    waiting: int
    failed: int
    graded: int


class HandedIn(NamedTuple):
    """A submission as its board's organiser sees it; its scores stay its owner's until they are published."""

    id: str
    system: str
    email: str  # empty where the account is gone
    state: str
    reason: str | None
    created_at: datetime
    published_at: datetime | None


class Act(NamedTuple):
    """Something that was done to a board."""

    at: datetime
    words: str
    by: str


def counts(connection: Connection, board_id: str) -> Counts:
    """Count what was handed in to a board."""
    mine = (submissions.c.board_id == board_id, submissions.c.kind == "submission")
    query = select(submissions.c.state, func.count(), func.count(submissions.c.published_at))
    rows = connection.execute(query.where(*mine).group_by(submissions.c.state)).all()
    by_state = {state: count for state, count, _ in rows}
    active = select(func.count()).select_from(submissions).join(jobs, jobs.c.id == submissions.c.job_id)
    waiting = connection.execute(active.where(*mine, jobs.c.state.in_(("queued", "running")))).scalar_one()
    graded = select(func.count(gradings.c.submission_id.distinct()))
    graded = graded.join(submissions, submissions.c.id == gradings.c.submission_id).where(*mine)
    return Counts(
        sum(by_state.values()),
        sum(published for *_, published in rows),
        waiting,
        by_state.get("failed", 0) + by_state.get("expired", 0),
        connection.execute(graded).scalar_one(),
    )


def handed_in(connection: Connection, board_id: str) -> list[HandedIn]:
    """Return what was handed in to a board, the newest first."""
    email = func.coalesce(users.c.email, "").label("email")
    told = [email if name == "email" else submissions.c[name] for name in HandedIn._fields]
    query = select(*told).join(users, users.c.id == submissions.c.user_id, isouter=True)
    mine = (submissions.c.board_id == board_id, submissions.c.kind == "submission")
    newest = query.where(*mine).order_by(submissions.c.created_at.desc(), submissions.c.id).limit(LISTED)
    return [HandedIn(*row) for row in connection.execute(newest)]


def acts(connection: Connection, board_id: str) -> list[Act]:
    """Return what was done to a board, the newest first."""
    told = (events.c.at, events.c.kind, events.c.details, func.coalesce(users.c.email, "").label("email"))
    query = select(*told).join(users, users.c.id == events.c.user_id, isouter=True)
    here = (events.c.subject == board_id, events.c.kind.in_(_ACTS))
    rows = connection.execute(query.where(*here).order_by(events.c.number.desc()).limit(LISTED))
    return [Act(row.at, _words(row.kind, row.details), row.email) for row in rows]


def _words(kind: str, details: dict[str, Any]) -> str:
    words = _ACTS[kind]
    match kind:
        case "labels replaced":
            words += f", version {details.get('version', 1)}; {details.get('regraded', 0)} graded again"
        case "regraded":
            words += f": {details.get('regraded', 0)} submissions"
        case "baselines imported":
            words += f": {details.get('count', 0)}"
        case "board changed":
            changed = (
                f"{key.removeprefix('is_').replace('_', ' a ')} {_said(details[key])}" for key in details
            )
            words += f": {', '.join(changed)}"
    return words


def _said(value: Any) -> str:
    told = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return told if len(told) <= 60 else f"{told[:59]}…"
