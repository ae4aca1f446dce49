"""Who is given what: each item to as many people as it wants, nobody twice, never their own, and nothing forgotten.

An item's answers are *slots*. Whoever is given an item holds one of its slots by a lease, which every save and
heartbeat extends; what is abandoned returns when the lease ends. The database itself refuses a slot to a second
person, so a lost race only means that the next item is tried. What to try is found out in a reading transaction, so
that the one writer is not kept from saving answers by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from ensue.platform.annotation import phases
from ensue.platform.annotation.choosing import Candidate, Choosing, Plan
from ensue.platform.annotation.people import Participant, People
from ensue.platform.annotation.projects import Project, Projects
from ensue.platform.database.schema import assignments, new_id, participants, project_items
from ensue.platform.refusals import Busy, Conflict, Forbidden, NotFound
from ensue.platform.service import Platform

_AGAIN = 8
WAITING = (
    "There is nothing for you at the moment: others are at work on what comes before it. Look again later."
)
LOST = "Somebody else was given this in the meantime, since nothing was heard of you for too long."
WITHDRAWN = "What this was made of has changed meanwhile, so it is not wanted any more; take the next one."


class Assignment(NamedTuple):
    """One person's work on one item."""

    id: str
    project_id: str
    item_id: str
    participant_id: str
    slot: int
    place: int
    state: str
    leased_at: datetime
    lease_until: datetime
    is_right: bool | None


COLUMNS = tuple(assignments.c[name] for name in Assignment._fields)
# Statements that every save and every taking needs are put together once.
_OWN = select(*COLUMNS).where(
    assignments.c.id == bindparam("given"), assignments.c.participant_id == bindparam("participant")
)
_OWN_LOCKED = _OWN.with_for_update()
_HELD = (
    select(assignments.c.id)
    .where(assignments.c.participant_id == bindparam("participant"), assignments.c.state == "leased")
    .order_by(assignments.c.place)
    .limit(1)
)
_OF_ITEM = select(*COLUMNS).where(
    assignments.c.item_id == bindparam("item"), assignments.c.participant_id == bindparam("participant")
)
_TAKEN = select(assignments.c.slot).where(
    assignments.c.item_id == bindparam("item"), assignments.c.state.in_(("leased", "answered"))
)
_LAST = select(func.max(assignments.c.place)).where(assignments.c.participant_id == bindparam("participant"))
_INSERT = insert(assignments)
_EXTEND = (
    update(assignments).where(assignments.c.id == bindparam("given")).values(lease_until=bindparam("until"))
)
# Those that somebody is saving to right now are skipped: they are not abandoned.
_ENDED_LEASES = (
    select(assignments.c.id)
    .where(assignments.c.state == "leased", assignments.c.lease_until <= bindparam("now"))
    .with_for_update(skip_locked=True)
)
_ENDED_HERE = _ENDED_LEASES.where(assignments.c.project_id == bindparam("project"))


class Waiting(NamedTuple):
    """There is nothing to do now, and there will be."""

    words: str


class _OutOfDate(NamedTuple):
    """A plan that was overtaken."""


class Assigning:
    """What people are given."""

    def __init__(self, platform: Platform) -> None:
        self.database, self.clock = platform.database, platform.clock
        self.projects, self.people = Projects(platform), People(platform)
        self.choosing = Choosing(platform)

    # Taking

    def take(self, participant_id: str) -> str | Waiting | None:
        """Give somebody something to do and return its assignment's id: what they hold already, or the next.

        None where nothing is left for them; they are finished then, unless something returns.
        """
        for _ in range(_AGAIN):
            with self.database.reading() as connection:
                plan = self.choosing.plan(connection, participant_id)
            with self.database.writing() as connection:
                found = self._claim(connection, participant_id, plan)
            if not isinstance(found, _OutOfDate):
                return found
        raise Busy("Too many people take something at once; try again in a few seconds.")

    def _claim(
        self, connection: Connection, participant_id: str, plan: Plan
    ) -> str | Waiting | _OutOfDate | None:
        """Hold the first of a plan that can be held."""
        participant = self.people.get(connection, participant_id, locked=True)
        participant.must_work()
        project = self.projects.get(connection, participant.project_id)
        if project.state != "open":
            raise Forbidden(_SHUT[project.state])
        now = self.clock.now()
        self.expire(connection, project.id)
        held = self.held(connection, participant_id)
        if held is not None:
            self._extend(connection, project, held, now)
            return held
        phase, state = phases.advance(connection, project, participant)
        if state == "stopped":
            return None
        if phase != plan.phase:
            return _OutOfDate()
        for candidate in plan.candidates:
            taken = self._hold(connection, project, participant, candidate, now)
            if taken is not None:
                if participant.state == "finished":
                    self._set_active(connection, participant_id)
                return taken
        if plan.candidates:
            return _OutOfDate()
        if plan.waiting:
            return Waiting(WAITING)
        phases.finish(connection, participant_id, now)
        return None

    def _set_active(self, connection: Connection, participant_id: str) -> None:
        back = {"state": "active", "finished_at": None}
        connection.execute(update(participants).where(participants.c.id == participant_id).values(**back))

    def held(self, connection: Connection, participant_id: str) -> str | None:
        """Return what somebody is at work on."""
        return connection.execute(_HELD, {"participant": participant_id}).scalar()

    def _hold(
        self,
        connection: Connection,
        project: Project,
        participant: Participant,
        candidate: Candidate,
        now: datetime,
    ) -> str | None:
        """Hold a slot of an item, None where none is free; whoever gave it back or lost it keeps what they wrote."""
        mine = {"item": candidate.item_id, "participant": participant.id}
        before = connection.execute(_OF_ITEM, mine).first()
        if before is not None and before.state not in {"expired", "released"}:
            return None
        lease = {"state": "leased", "lease_until": now + _lease(project)}
        for slot in self._free(connection, candidate, participant.id):
            try:
                with connection.begin_nested():
                    if before is not None:
                        connection.execute(
                            update(assignments)
                            .where(assignments.c.id == before.id)
                            .values(slot=slot, **lease)
                        )
                        return str(before.id)
                    last = connection.execute(_LAST, {"participant": participant.id}).scalar()
                    row: dict[str, Any] = {
                        "id": new_id(),
                        "project_id": project.id,
                        "item_id": candidate.item_id,
                    }
                    row |= {"participant_id": participant.id, "slot": slot, "leased_at": now}
                    connection.execute(_INSERT, {**row, **lease, "place": (last or 0) + 1})
                    return str(row["id"])
            except IntegrityError:
                continue  # another was faster
        return None

    def _free(self, connection: Connection, candidate: Candidate, participant_id: str) -> Sequence[int]:
        """Return the slots of an item that nobody holds; what everybody is given has one for each."""
        if candidate.wanted is None:
            own = int.from_bytes(hashlib.sha256(participant_id.encode()).digest()[:4]) >> 2
            return range(own, own + 20)
        taken = set(connection.execute(_TAKEN, {"item": candidate.item_id}).scalars())
        return [slot for slot in range(candidate.wanted) if slot not in taken]

    # Leases

    def expire(self, connection: Connection, project_id: str | None = None) -> int:
        """Free what was abandoned, in one project or in all; return how many leases ended."""
        given: dict[str, Any] = {"now": self.clock.now()}
        if project_id is not None:
            given["project"] = project_id
        query = _ENDED_LEASES if project_id is None else _ENDED_HERE
        ids = connection.execute(query, given).scalars().all()
        if ids:
            connection.execute(update(assignments).where(assignments.c.id.in_(ids)).values(state="expired"))
        return len(ids)

    def free_abandoned(self) -> None:
        """Free what was abandoned in any project; nothing is written where there is none."""
        ended = (assignments.c.state == "leased", assignments.c.lease_until <= self.clock.now())
        with self.database.reading() as connection:
            if connection.execute(select(assignments.c.id).where(*ended).limit(1)).first() is None:
                return
        with self.database.writing() as connection:
            self.expire(connection)

    def own(
        self, connection: Connection, participant_id: str, assignment_id: str, *, locked: bool = False
    ) -> Assignment:
        """Return somebody's assignment; another's is not found."""
        mine = {"given": assignment_id, "participant": participant_id}
        row = connection.execute(_OWN_LOCKED if locked else _OWN, mine).first()
        if row is None:
            raise no_assignment()
        return Assignment(*row)

    def project_of(self, connection: Connection, assignment_id: str) -> Project:
        """Return the project of an assignment."""
        query = select(assignments.c.project_id).where(assignments.c.id == assignment_id)
        found = connection.execute(query).scalar()
        if found is None:
            raise no_assignment()
        return self.projects.get(connection, found)

    def keep(self, connection: Connection, project: Project, assignment: Assignment) -> datetime:
        """Extend a lease, or take one that ended again where a slot is free; return how long it lasts now."""
        now = self.clock.now()
        if assignment.state == "expired" and project.state != "closed":
            self.expire(connection, project.id)
            wanted = select(project_items.c.wanted).where(project_items.c.id == assignment.item_id)
            candidate = Candidate(assignment.item_id, connection.execute(wanted).scalar())
            participant = self.people.get(connection, assignment.participant_id)
            if self._hold(connection, project, participant, candidate, now) is None:
                raise Conflict(WITHDRAWN if candidate.wanted == 0 else LOST)
        elif assignment.state == "leased":
            self._extend(connection, project, assignment.id, now)
        elif assignment.state != "answered":
            raise Conflict(_ENDED.get(assignment.state, _SHUT["closed"]))
        return now + _lease(project)

    def _extend(self, connection: Connection, project: Project, assignment_id: str, now: datetime) -> None:
        connection.execute(_EXTEND, {"given": assignment_id, "until": now + _lease(project)})

    def heartbeat(self, participant_id: str, assignment_id: str) -> datetime:
        """Say that somebody is still at work; return until when the lease lasts."""
        with self.database.writing() as connection:
            participant = self.people.get(connection, participant_id, locked=True)
            participant.must_work()
            assignment = self.own(connection, participant_id, assignment_id, locked=True)
            project = self.projects.get(connection, assignment.project_id)
            return self.keep(connection, project, assignment)

    def release(self, participant_id: str, assignment_id: str) -> None:
        """Give something back; what was saved of it is kept for whoever gave it back."""
        with self.database.writing() as connection:
            self.people.get(connection, participant_id, locked=True)
            assignment = self.own(connection, participant_id, assignment_id, locked=True)
            if assignment.state == "leased":
                connection.execute(
                    update(assignments).where(assignments.c.id == assignment_id).values(state="released")
                )


_SHUT = {
    "draft": "This project is not open yet.",
    "paused": "This project is paused; what you saved is kept. Come back later.",
    "closed": "This project is closed; thank you for your work.",
}
_ENDED = {
    "released": "You gave this back; take it again to go on with it.",
    "void": "Your work on this project does not count any more, so this cannot be saved.",
}


def no_assignment() -> NotFound:
    """Return what is said of an assignment that is not there, or is another's."""
    return NotFound("There is no such assignment.")


def _lease(project: Project) -> timedelta:
    return timedelta(minutes=float(project.settings["lease_minutes"]))
