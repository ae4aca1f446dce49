"""What is told of a submission: to its owner everything, to others what was published of it, rounded for both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from ensue.platform.accounts import User
from ensue.platform.boards.board import Board, Boards
from ensue.platform.boards.standing import FEWEST, cut
from ensue.platform.database.schema import gradings, submissions, uploads
from ensue.platform.jobs import Queue
from ensue.platform.refusals import NotFound

MISSING = "There is no such submission; it may be private, or withdrawn."
_STANDS_NO_MORE = "It cannot be graded with the labels that the board has now, and stands on it no more."
_FACTS = ("system", "description", "parameters", "sharing", "data")
# An anonymous submission is told without what says whose it is.
_NAMING = ("team", "link", "code")


class Views:
    """Submissions as they are told to whoever asks."""

    def __init__(self, boards: Boards, queue: Queue) -> None:
        self.boards, self.queue = boards, queue

    def show(self, connection: Connection, caller: User | None, submission_id: str) -> dict[str, Any]:
        """Return a submission; another's, only where it is published."""
        row = connection.execute(select(submissions).where(submissions.c.id == submission_id)).first()
        is_own = row is not None and caller is not None and row.user_id == caller.id
        if row is None or not (is_own or row.published_at is not None):
            raise NotFound(MISSING)
        board = self.boards.get(connection, row.board_id)
        return self._own(connection, board, row) if is_own else self._published(connection, board, row)

    def own(self, connection: Connection, caller: User, board: Board | None = None) -> list[dict[str, Any]]:
        """Return all that a user handed in, or to one board, the newest first."""
        query = select(submissions).where(submissions.c.user_id == caller.id)
        if board is not None:
            query = query.where(submissions.c.board_id == board.id)
        found = connection.execute(query.order_by(submissions.c.created_at.desc(), submissions.c.id)).all()
        known = {one.id: one for one in self.boards.all(connection)}
        return [self._own(connection, known[row.board_id], row) for row in found]

    def _own(self, connection: Connection, board: Board, row: Row[Any]) -> dict[str, Any]:
        state, place = self.state(connection, row)
        upload = connection.execute(select(uploads).where(uploads.c.id == row.upload_id)).first()
        past = gradings_of(connection, row.id)
        return {
            **self._common(board, row, past),
            **{name: getattr(row, name) for name in _NAMING},
            "email": row.contact,
            "state": state,
            "reason": row.reason,
            "position": place,
            "is_regrading": row.state == "graded" and place is not None,
            "file": upload.name if upload else "",
            "created_at": row.created_at.isoformat(),
        }

    def _published(self, connection: Connection, board: Board, row: Row[Any]) -> dict[str, Any]:
        naming = (
            dict.fromkeys(_NAMING, "") if row.is_anonymous else {name: getattr(row, name) for name in _NAMING}
        )
        past = gradings_of(connection, row.id)
        stands = row.state == "graded"
        return {
            **self._common(board, row, past),
            **naming,
            "state": row.state,
            "reason": None if stands else _STANDS_NO_MORE,
            "position": None,
            "is_regrading": stands and self.state(connection, row)[1] is not None,
        }

    def _common(self, board: Board, row: Row[Any], past: list[Row[Any]]) -> dict[str, Any]:
        stands = row.state == "graded" and bool(past)
        return {
            "id": row.id,
            "board": board.name,
            "kind": row.kind,
            **{name: getattr(row, name) for name in _FACTS},
            "is_anonymous": row.is_anonymous,
            "published_at": _iso(row.published_at),
            "scores": scores(past[-1], board) if stands else None,
            "history": [
                {
                    "graded_at": one.graded_at.isoformat(),
                    "labels_version": one.labels_version,
                    "score": cut(one.score, board.rounding),
                    "metrics": figures(one.metrics, board.rounding),
                }
                for one in past
            ],
        }

    def state(self, connection: Connection, row: Row[Any]) -> tuple[str, int | None]:
        """Return a submission's state and its place in the queue: 1 is next, 0 is being graded, None is neither."""
        if row.job_id is None:
            return row.state, None
        job = self.queue.find(connection, row.job_id)
        place = self.queue.place(connection, job)
        # The queue knows which of the two it is.
        return (job.state if row.state == "queued" and place is not None else row.state), place


def gradings_of(connection: Connection, submission_id: str) -> list[Row[Any]]:
    """Return every grading of a submission; the last one stands."""
    query = select(gradings).where(gradings.c.submission_id == submission_id).order_by(gradings.c.number)
    return list(connection.execute(query))


def scores(grading: Row[Any], board: Board) -> dict[str, Any]:
    """Return what a grading gave, rounded as its board says."""
    digits = board.rounding
    kept = [row for row in grading.diagnostics if not 0 < row.get("n", 0) < FEWEST]
    return {
        "score": cut(grading.score, digits),
        "metrics": figures(grading.metrics, digits),
        "diagnostics": figures(kept, digits),
        "not_scored": grading.not_scored,
        "notes": grading.notes,
        "covers": grading.covers,
        "labels_version": grading.labels_version,
        "graded_at": grading.graded_at.isoformat(),
        "version": grading.version,
    }


def figures(rows: Iterable[Mapping[str, Any]], digits: int) -> list[dict[str, Any]]:
    """Return metric rows whose values and intervals have so many digits."""
    return [
        {
            **row,
            "value": cut(row["value"], digits),
            "ci95": [cut(bound, digits) for bound in row.get("ci95") or (None, None)],
        }
        for row in rows
    ]


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time else None
