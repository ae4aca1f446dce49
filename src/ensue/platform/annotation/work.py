"""What somebody at work is shown: where they stand, and the item they have."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from ensue.platform.annotation.answering import feedback
from ensue.platform.annotation.assigning import Assigning, Assignment
from ensue.platform.annotation.people import Participant
from ensue.platform.annotation.projects import Project
from ensue.platform.database.schema import answers, assignments, project_items


def standing(
    connection: Connection, assigning: Assigning, project: Project, participant: Participant
) -> dict[str, Any]:
    """Return where somebody stands in a project: phase, what is done and left, and what to tell at the end."""
    done = _done(connection, participant)
    works = participant.state in {"active", "finished"}
    left = assigning.choosing.left(connection, participant) if works else 0
    current = assigning.held(connection, participant.id) if works else None
    # A project that is closed ends for everybody; whoever came when all was done has nothing to show for it.
    ended = participant.state == "finished" or (works and project.state == "closed")
    ended = ended and _any_answered(connection, participant)
    code, url = project.settings["completion_code"], project.settings["completion_url"]
    told = ("name", "title", "instructions", "state", "kind")
    return {
        "pseudonym": participant.pseudonym,
        "phase": participant.phase,
        "state": participant.state,
        "reason": participant.reason,
        "done": done,
        "left": left,
        "total": done + left + (current is not None),
        "completion": {"code": code, "url": url} if ended else None,
        "current": current,
        "consented": True,
        "project": {name: getattr(project, name) for name in told},
    }


def _any_answered(connection: Connection, participant: Participant) -> bool:
    mine = (assignments.c.participant_id == participant.id, assignments.c.state == "answered")
    return connection.execute(select(assignments.c.id).where(*mine).limit(1)).first() is not None


def _done(connection: Connection, participant: Participant) -> int:
    """Return how many items of their phase somebody answered; controls are among them, as among what is left."""
    query = select(func.count()).select_from(assignments)
    joined = query.join(project_items, project_items.c.id == assignments.c.item_id)
    mine = (
        assignments.c.participant_id == participant.id,
        assignments.c.state == "answered",
        project_items.c.phase == participant.phase,
    )
    return int(connection.execute(joined.where(*mine)).scalar_one())


_ITEM = tuple(project_items.c[name] for name in ("form", "phase", "group_name", "stage", "secret"))
_SAVED = tuple(answers.c[name] for name in ("given", "is_final", "active_ms", "elapsed_ms", "seq"))
# Asked with every taking, so put together once.
_SHOWN = (
    select(*_ITEM, *_SAVED)
    .join(answers, answers.c.assignment_id == bindparam("assignment"), isouter=True)
    .where(project_items.c.id == bindparam("item"))
)


def shown(connection: Connection, assignment: Assignment) -> dict[str, Any]:
    """Return an assignment as whoever has it is shown it; nothing secret."""
    item = connection.execute(_SHOWN, {"item": assignment.item_id, "assignment": assignment.id}).one()
    answer = None
    if item.seq is not None:
        answer = {
            "values": item.given,
            "final": item.is_final,
            "active_ms": item.active_ms,
            "elapsed_ms": item.elapsed_ms,
            "seq": item.seq,
        }
    answered = assignment.state == "answered"
    return {
        "id": assignment.id,
        "item": {
            "form": item.form,
            "phase": item.phase,
            "group": item.group_name,
            "stage": item.stage,
        },
        "lease_until": assignment.lease_until.isoformat(),
        "place": assignment.place,
        "state": assignment.state,
        "answer": answer,
        "feedback": feedback(item.phase, item.secret, assignment.is_right) if answered else None,
    }


def listed(connection: Connection, participant: Participant) -> list[dict[str, Any]]:
    """Return what somebody was given, in that order."""
    query = (
        select(assignments.c.id, assignments.c.place, assignments.c.state, project_items.c.phase)
        .join(project_items, project_items.c.id == assignments.c.item_id)
        .where(assignments.c.participant_id == participant.id)
        .order_by(assignments.c.place)
    )
    return [dict(row) for row in connection.execute(query).mappings()]
