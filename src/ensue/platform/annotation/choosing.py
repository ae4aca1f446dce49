"""What somebody may be given next, and in which order it is tried.

Items of the group that somebody is in come first, then those that lack the fewest answers, so that items become whole
early; after that it is the order of the items, a little different for everybody. Controls are mixed in at a fixed
rate that begins at a place of each person's own; nobody answers one twice, and whoever gives one back is due another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, String, and_, bindparam, case, false, func, or_, select

from ensue.benchmarks.people.export import BARRED
from ensue.platform.annotation.people import Participant, People
from ensue.platform.annotation.projects import Project, Projects
from ensue.platform.database.schema import assignments, participants, project_items
from ensue.platform.service import Platform

_TRIED = 50  # items that are looked at for one person; more only where some are not for everybody
_JITTER = 10.0  # places that an item is given earlier or later, so that no two people have the same order


class Candidate(NamedTuple):
    """An item to try, and how many answers it wants; None for one that everybody is given."""

    item_id: str
    wanted: int | None


class Plan(NamedTuple):
    """What to try for somebody, in this order, in the phase they were in when it was made."""

    phase: str
    candidates: Sequence[Candidate]
    waiting: bool = False


class Choosing:
    """What people may be given; nothing here changes anything."""

    def __init__(self, platform: Platform) -> None:
        self.clock = platform.clock
        self.projects, self.people = Projects(platform), People(platform)

    def plan(self, connection: Connection, participant_id: str) -> Plan:
        """Return what to try for somebody."""
        participant = self.people.get(connection, participant_id)
        project = self.projects.get(connection, participant.project_id)
        if participant.phase != "work":
            return Plan(participant.phase, self._before_work(connection, participant))
        found = self._work(connection, project, participant)
        waiting = not found and self._comes_later(connection, project, participant)
        return Plan("work", found, waiting)

    def left(self, connection: Connection, participant: Participant) -> int:
        """Return how many items somebody could still be given now, with the controls that come among them, so that
        nobody can tell those by how far they are."""
        if participant.phase != "work":
            return len(self._before_work(connection, participant))
        project = self.projects.get(connection, participant.project_id)
        had = _had(connection, participant.id)
        room = _room(project, had)
        if room == 0:
            return 0
        if project.load_kind().follows:
            found = len(self._open_items(connection, project, participant, ""))
        else:
            given = self._given(project, participant, "")
            found = int(connection.execute(_open_count(), given).scalar_one())
        work = found if room is None else min(room, found)
        return work + self._controls_among(connection, project, participant, had, work)

    def _before_work(self, connection: Connection, participant: Participant) -> list[Candidate]:
        """Return what is left of training or qualification, in its order; nothing where no work would follow it."""
        if connection.execute(_unanswered(participant.project_id).limit(1)).first() is None:
            return []
        here = (
            project_items.c.project_id == participant.project_id,
            project_items.c.phase == participant.phase,
            project_items.c.id.not_in(_touched(participant.id, self.clock.now())),
        )
        query = select(project_items.c.id).where(*here).order_by(project_items.c.position)
        return [Candidate(id, None) for id in connection.execute(query).scalars()]

    def _work(self, connection: Connection, project: Project, participant: Participant) -> list[Candidate]:
        had = _had(connection, participant.id)
        if _room(project, had) == 0:
            return []
        last = next((row.group_name for row in reversed(had) if not row.is_control), "")
        rows = self._open_items(connection, project, participant, last)
        if not rows:
            return []
        given_back = {row.item_id for row in had if row.state == "released"}

        def order(row: Any) -> tuple[bool, bool, int, float]:
            if last and row.group_name == last:
                return row.id in given_back, False, 0, float(row.position)
            jitter = _JITTER * (2 * _chance(project.seed, participant.id, row.id) - 1)
            return row.id in given_back, True, row.lacking, row.position + jitter

        found = [Candidate(row.id, row.wanted) for row in sorted(rows, key=order)]
        return self._control(connection, project, participant, had) + found

    def _open_items(
        self, connection: Connection, project: Project, participant: Participant, last: str
    ) -> Sequence[Any]:
        """Return items that want more answers and may be had by somebody, those that lack least first.

        Where a kind has later stages, all of them are looked at, since some are not for everybody.
        """
        follows = project.load_kind().follows
        given = self._given(project, participant, last)
        rows = connection.execute(_open_query(follows), given).all()
        return [row for row in rows if not follows or _may_have(participant.pseudonym, row.secret)]

    def _given(self, project: Project, participant: Participant, last: str) -> dict[str, Any]:
        return {"project": project.id, "participant": participant.id, "now": self.clock.now(), "last": last}

    def _control(
        self, connection: Connection, project: Project, participant: Participant, had: Sequence[Any]
    ) -> list[Candidate]:
        """Return a control where one is due: at a fixed rate of what is answered or held, from a place that differs
        between people. One that was given back or lost comes again after all others."""
        held = self._held_work(had)
        done = {row.item_id for row in held if row.is_control}
        if not _control_due(*_rate(project, participant), len(held), len(done)):
            return []
        ids = set(connection.execute(_controls(project.id)).scalars()) - done
        if not ids:
            return []
        seen = {row.item_id for row in had}
        first = min(ids, key=lambda id: (id in seen, _chance(project.seed, participant.id, id)))
        return [Candidate(first, None)]

    def _held_work(self, had: Sequence[Any]) -> list[Any]:
        now = self.clock.now()
        return [row for row in had if row.phase == "work" and _holds(row, now)]

    def _controls_among(
        self,
        connection: Connection,
        project: Project,
        participant: Participant,
        had: Sequence[Any],
        work: int,
    ) -> int:
        """Return how many controls come among so many items of work that are still to be taken."""
        if not work or not project.settings["control_rate"]:
            return 0
        held = self._held_work(had)
        done = sum(row.is_control for row in held)
        there = len(connection.execute(_controls(project.id)).all())
        rate, begin = _rate(project, participant)
        count, coming = len(held), 0
        while work > 0 and done + coming < there:
            if _control_due(rate, begin, count, done + coming):
                coming += 1
            else:
                work -= 1
            count += 1
        return coming

    def _comes_later(self, connection: Connection, project: Project, participant: Participant) -> bool:
        """Return whether others are at work on what later stages are made of."""
        if not project.load_kind().follows or _room(project, _had(connection, participant.id)) == 0:
            return False
        barred = (participants.c.project_id == project.id, participants.c.state.in_(BARRED))
        gone = set(connection.execute(select(participants.c.pseudonym).where(*barred)).scalars())
        # What only somebody who has gone could do is waited for in vain.
        return any(
            not secret.get("among") or set(secret["among"]) - gone
            for secret in connection.execute(_unanswered(project.id)).scalars()
        )


def _rate(project: Project, participant: Participant) -> tuple[float, float]:
    """Return the rate of controls, and where between two of them somebody begins."""
    return float(project.settings["control_rate"]), _chance(project.seed, participant.id, "controls")


def _control_due(rate: float, begin: float, held: int, controls: int) -> bool:
    """Return whether a control comes next to whoever answered or holds so many items, so many of them controls."""
    return controls < int((held + 1) * rate + begin)


def _controls(project_id: str) -> Select[Any]:
    here = (project_items.c.project_id == project_id, project_items.c.is_control)
    return select(project_items.c.id).where(*here)


def _unanswered(project_id: str) -> Select[Any]:
    """Return the query for the secrets of work that wants more answers than were given, under way or not."""
    answered = (
        select(func.count())
        .where(assignments.c.item_id == project_items.c.id, assignments.c.state == "answered")
        .correlate(project_items)
        .scalar_subquery()
    )
    here = (project_items.c.project_id == project_id, project_items.c.wanted > answered)
    return select(project_items.c.secret).where(*here)


# Statements that every taking needs are put together once.


@cache
def _had_query() -> Select[Any]:
    columns = (assignments.c.item_id, assignments.c.state, assignments.c.lease_until)
    about = (project_items.c.phase, project_items.c.is_control, project_items.c.group_name)
    joined = select(*columns, *about).join(project_items, project_items.c.id == assignments.c.item_id)
    mine = assignments.c.participant_id == bindparam("participant")
    return joined.where(mine).order_by(assignments.c.place)


def _had(connection: Connection, participant_id: str) -> Sequence[Any]:
    """Return everything that somebody was ever given, in that order."""
    return connection.execute(_had_query(), {"participant": participant_id}).all()


def _holds(row: Any, now: datetime) -> bool:
    return bool(row.state == "answered" or (row.state == "leased" and row.lease_until > now))


def _room(project: Project, had: Sequence[Any]) -> int | None:
    """Return how many more work items somebody may have, None for any number."""
    most = project.settings.get("most_items")
    if most is None:
        return None
    work = (row for row in had if row.phase == "work" and not row.is_control)
    return max(0, int(most) - sum(row.state in {"leased", "answered"} for row in work))


def _touched(participant: Any, now: Any) -> Any:
    """Return the items that somebody had, but for those that they lost, or are about to, or gave back."""
    lost = and_(assignments.c.state == "leased", assignments.c.lease_until <= now)
    mine = (
        assignments.c.participant_id == participant,
        assignments.c.state.not_in(("expired", "released")),
        ~lost,
    )
    return select(assignments.c.item_id).where(*mine)


@cache
def _open_items_query() -> tuple[Select[Any], Any]:
    """Return the items that want more answers than there are, and how many each lacks."""
    held = or_(
        assignments.c.state == "answered",
        and_(assignments.c.state == "leased", assignments.c.lease_until > bindparam("now")),
    )
    counted = (
        select(assignments.c.item_id, func.count().label("held"))
        .where(assignments.c.project_id == bindparam("project"), held)
        .group_by(assignments.c.item_id)
        .subquery()
    )
    lacking = project_items.c.wanted - func.coalesce(counted.c.held, 0)
    query = (
        select(project_items.c.id)
        .join(counted, counted.c.item_id == project_items.c.id, isouter=True)
        .where(
            project_items.c.project_id == bindparam("project"),
            project_items.c.phase == "work",
            project_items.c.is_control == false(),
            lacking > 0,
            project_items.c.id.not_in(_touched(bindparam("participant"), bindparam("now"))),
        )
    )
    return query, lacking


@cache
def _open_count() -> Select[Any]:
    return select(func.count()).select_from(_open_items_query()[0].subquery())


@cache
def _open_query(follows: bool) -> Select[Any]:
    """Return the query for what somebody may be given: the group they are in first, then what lacks least."""
    query, lacking = _open_items_query()
    columns = [project_items.c.position, project_items.c.group_name, project_items.c.wanted]
    columns += [project_items.c.secret] if follows else []
    last = bindparam("last", type_=String())
    elsewhere = case((and_(last != "", project_items.c.group_name != last), 1), else_=0)
    whole = query.add_columns(*columns, lacking.label("lacking"))
    ordered = whole.order_by(elsewhere, lacking, project_items.c.position)
    return ordered if follows else ordered.limit(_TRIED)


def _may_have(pseudonym: str, secret: dict[str, Any]) -> bool:
    among = secret.get("among")
    return pseudonym not in secret.get("authors", ()) and (not among or pseudonym in among)


def _chance(seed: int, *parts: str) -> float:
    """Return a number from 0 to 1 that is the same for the same words."""
    words = "/".join((str(seed), *parts)).encode()
    return int.from_bytes(hashlib.sha256(words).digest()[:8]) / 2**64
