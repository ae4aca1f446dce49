"""From training over the qualification to the work, and who is stopped on the way.

`bar` says who qualifies: a fraction of right answers, or `median`: as many as the median of all who came through the
qualification before, half where these are fewer than five. At work, whoever misses too many controls or answers too
fast too often is stopped with a polite sentence, and the work is given to others.
"""

from __future__ import annotations

import statistics
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Select, bindparam, case, func, select, update

from ensue.platform.database.schema import PHASES, assignments, participants, project_items

if TYPE_CHECKING:
    from ensue.platform.annotation.people import Participant
    from ensue.platform.annotation.projects import Project

_FEW = 5  # who came through a qualification: fewer have no median worth the name
UNQUALIFIED = (
    "Thank you for taking part. Your answers to the qualification differ from those we expected too often for us to"
    " go on with you here; you need not do anything more."
)
MISSED = (
    "Thank you for your work. Some questions have a known answer, and yours differ from it too often for us to go on"
    " with you here; you need not do anything more."
)
HASTY = (
    "Thank you for your work. Some of your answers came faster than the texts can be read, so we do not go on with"
    " you here; you need not do anything more."
)


def first(connection: Connection, project_id: str) -> str:
    """Return the phase that a project begins with."""
    there = set(
        connection.execute(
            select(project_items.c.phase).where(project_items.c.project_id == project_id).distinct()
        ).scalars()
    )
    return next((phase for phase in PHASES if phase in there), "work")


def advance(connection: Connection, project: Project, participant: Participant) -> tuple[str, str]:
    """Take somebody to the next phase where all of this one is answered; return their phase and state."""
    phase = participant.phase
    while phase != "work":
        total = _count(connection, project.id, phase)
        if _answered(connection, participant.id, phase) < total:
            break
        if phase == "qualification" and total and not _qualified(connection, project, participant, total):
            stop(connection, participant.id, "stopped", UNQUALIFIED)
            return phase, "stopped"
        phase = PHASES[PHASES.index(phase) + 1]
    if phase != participant.phase:
        connection.execute(
            update(participants).where(participants.c.id == participant.id).values(phase=phase)
        )
    return phase, participant.state


def _count(connection: Connection, project_id: str, phase: str) -> int:
    here = (project_items.c.project_id == project_id, project_items.c.phase == phase)
    return int(connection.execute(select(func.count()).select_from(project_items).where(*here)).scalar_one())


def _of_phase(phase: str) -> Select[Any]:
    right = func.coalesce(func.sum(case((assignments.c.is_right.is_(True), 1), else_=0)), 0)
    query = select(func.count(assignments.c.id), right)
    joined = query.join(project_items, project_items.c.id == assignments.c.item_id)
    return joined.where(assignments.c.state == "answered", project_items.c.phase == phase)


def _answered(connection: Connection, participant_id: str, phase: str) -> int:
    mine = assignments.c.participant_id == participant_id
    count: int = connection.execute(_of_phase(phase).where(mine)).one()[0]
    return count


def _qualified(connection: Connection, project: Project, participant: Participant, total: int) -> bool:
    bar = project.settings.get("bar")
    if bar is None:
        return True
    query = _of_phase("qualification").where(assignments.c.project_id == project.id)
    rows = connection.execute(
        query.add_columns(assignments.c.participant_id).group_by(assignments.c.participant_id)
    ).all()
    rights = {row[2]: row[1] / total for row in rows if row[0] >= total}
    own = rights.pop(participant.id)
    if bar == "median":
        bar = statistics.median(rights.values()) if len(rights) >= _FEW else 0.5
    return bool(own >= bar)


def check_conduct(connection: Connection, project: Project, participant: Participant) -> str | None:
    """Stop somebody who missed too many controls or was too fast too often; return the sentence for them."""
    counted = connection.execute(_conduct(), {"participant": participant.id}).one()
    if counted[0] > project.settings["most_missed"]:
        reason = MISSED
    elif counted[1] > project.settings["most_hasty"]:
        reason = HASTY
    else:
        return None
    stop(connection, participant.id, "stopped", reason)
    return reason


@cache
def _conduct() -> Select[Any]:
    """Return the query for the controls that somebody missed and the answers that came too fast."""
    missed = func.sum(case((project_items.c.is_control & assignments.c.is_right.is_(False), 1), else_=0))
    hasty = func.sum(case((assignments.c.is_hasty, 1), else_=0))
    query = select(func.coalesce(missed, 0), func.coalesce(hasty, 0))
    joined = query.join(project_items, project_items.c.id == assignments.c.item_id)
    mine = (assignments.c.participant_id == bindparam("participant"), assignments.c.state == "answered")
    return joined.where(*mine, project_items.c.phase == "work")


def stop(connection: Connection, participant_id: str, state: str, reason: str) -> int:
    """Stop somebody and make their work void, so that others are given it; return how many answers that were, without
    controls, which nobody is given again."""
    work = select(project_items.c.id).where(project_items.c.phase == "work")
    wanted = work.where(project_items.c.wanted > 0)
    held = (assignments.c.participant_id == participant_id, assignments.c.state.in_(("leased", "answered")))
    answered = select(func.count()).where(
        *held, assignments.c.item_id.in_(wanted), assignments.c.state == "answered"
    )
    count = int(connection.execute(answered).scalar_one())
    connection.execute(update(assignments).where(*held, assignments.c.item_id.in_(work)).values(state="void"))
    # What was begun in another phase is answered by nobody.
    begun = (assignments.c.participant_id == participant_id, assignments.c.state == "leased")
    connection.execute(update(assignments).where(*begun).values(state="void"))
    connection.execute(
        update(participants).where(participants.c.id == participant_id).values(state=state, reason=reason)
    )
    return count


def finish(connection: Connection, participant_id: str, now: datetime) -> None:
    """Write down that there is nothing left for somebody."""
    mine = (participants.c.id == participant_id, participants.c.state == "active")
    connection.execute(update(participants).where(*mine).values(state="finished", finished_at=now))
