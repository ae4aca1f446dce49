"""What people said: every save is kept at once, and only the last final value is the answer.

A save comes with a key, so that the same one sent again is the same save, and with a number that grows, so that one
that was overtaken on the way replaces nothing. All that was ever sent is in the history. What a final answer sets off
(feedback, the next phase, being stopped, later stages) is in the same transaction.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, select, update

from ensue.benchmarks.people.checking import answer_problems, settled
from ensue.benchmarks.people.form import Form
from ensue.platform.annotation import following, phases
from ensue.platform.annotation.assigning import Assigning, Assignment
from ensue.platform.annotation.people import Participant, People
from ensue.platform.annotation.projects import Project, Projects
from ensue.platform.database.schema import answer_history, answers, assignments, project_items
from ensue.platform.refusals import Conflict, Invalid, line
from ensue.platform.service import Platform

_LONGEST_KEY = 200


class Given(NamedTuple):
    """What is to be saved; times are those that the browser counted, in milliseconds."""

    values: Mapping[str, Any]
    final: bool
    seq: int
    active_ms: int
    elapsed_ms: int

    def digest(self) -> str:
        """Return a digest of all of it."""
        words = json.dumps(self._asdict(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(words.encode()).hexdigest()


class Unanswered(Invalid):
    """A final answer that lacks something, or one of another form; `problems` have the field and a sentence."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(problems[0][1])
        self.problems = [{"field": field, "problem": words} for field, words in problems]


class _Item(NamedTuple):
    id: str
    position: int
    phase: str
    group: str
    stage: str
    form: Form
    secret: Mapping[str, Any]

    @property
    def gold(self) -> Mapping[str, Any] | None:
        gold: Mapping[str, Any] | None = self.secret["gold"]
        return gold


class Answering:
    """What is done with what people said."""

    def __init__(self, platform: Platform) -> None:
        self.database, self.clock = platform.database, platform.clock
        self.projects, self.people = Projects(platform), People(platform)
        self.assigning = Assigning(platform)

    def save(self, participant_id: str, assignment_id: str, key: str, given: Given) -> dict[str, Any]:
        """Save what somebody said, and return what they are told."""
        key = line(key, "The Idempotency-Key", _LONGEST_KEY, least=1)
        with self.database.writing() as connection:
            assignment = self.assigning.own(connection, participant_id, assignment_id)
            project = self.projects.get(connection, assignment.project_id)
            item = _item(connection, assignment.item_id)
            follows = bool(given.final and project.load_kind().follows)
            if follows:
                # One at a time, so that whoever is last sees what all others said.
                project = self.projects.get(connection, project.id, locked=True)
            participant = self.people.get(connection, participant_id, locked=True)
            assignment = self.assigning.own(connection, participant_id, assignment_id, locked=True)
            before = self._before(connection, assignment_id, key, given)
            if before is not None:
                return before
            participant.must_work()
            if problems := answer_problems(item.form, given.values, final=given.final):
                raise Unanswered(problems)
            told = self._save(connection, project, participant, assignment, item, given)
            self._remember(connection, assignment_id, key, given, told)
            if follows and told["final"] and item.group:
                following.revise(connection, project, item.group)
            return told

    def _before(
        self, connection: Connection, assignment_id: str, key: str, given: Given
    ) -> dict[str, Any] | None:
        """Return what was answered when this key came before."""
        mine = (answer_history.c.assignment_id == assignment_id, answer_history.c.key == key)
        query = select(answer_history.c.digest, answer_history.c.answer).where(*mine)
        row = connection.execute(query).first()
        if row is None:
            return None
        if row.digest != given.digest():
            raise Invalid("This Idempotency-Key came with something else before; use a new one.")
        return dict(row.answer)

    def _save(
        self,
        connection: Connection,
        project: Project,
        participant: Participant,
        assignment: Assignment,
        item: _Item,
        given: Given,
    ) -> dict[str, Any]:
        now = self.clock.now()
        last = connection.execute(
            select(answers.c.seq, answers.c.saved_at, answers.c.is_final).where(
                answers.c.assignment_id == assignment.id
            )
        ).first()
        was_final = assignment.state == "answered"
        if was_final:
            assert last is not None
            self._refuse_correction(connection, project, participant, item, last.saved_at, now)
        until = self.assigning.keep(connection, project, assignment)
        overtaken = last is not None and given.seq <= last.seq
        told = {"seq": last.seq if overtaken and last else given.seq, "saved_at": now.isoformat()}
        told |= {"lease_until": until.isoformat(), "final": was_final, "feedback": None}
        # A draft does not take the place of an answer.
        if overtaken or (was_final and not given.final):
            return told
        times = _times(given, assignment, now)
        values = settled(item.form, given.values) if given.final else dict(given.values)
        row = {"given": values, "is_final": given.final, "seq": given.seq, "saved_at": now, **times}
        if last is None:
            connection.execute(insert(answers).values(assignment_id=assignment.id, **row))
        else:
            connection.execute(update(answers).where(answers.c.assignment_id == assignment.id).values(**row))
        if given.final:
            told["final"] = True
            told["feedback"] = self._finish(connection, project, participant, assignment, item, values, times)
        return told

    def _finish(
        self,
        connection: Connection,
        project: Project,
        participant: Participant,
        assignment: Assignment,
        item: _Item,
        values: Mapping[str, Any],
        times: Mapping[str, int],
    ) -> dict[str, Any] | None:
        """Record a final answer and what it sets off; return the feedback of a training item."""
        right = None if item.gold is None else bool(project.load_kind().right(item.gold, values))
        least = max(item.form.minimum_seconds, float(project.settings["minimum_seconds"]))
        hasty = item.phase == "work" and times["active_ms"] < 1000 * least
        done = {"state": "answered", "answered_at": self.clock.now(), "is_right": right, "is_hasty": hasty}
        connection.execute(update(assignments).where(assignments.c.id == assignment.id).values(**done))
        if item.phase == "work":
            if phases.check_conduct(connection, project, participant) is not None:
                following.revise_after(connection, project, participant.id)
        else:
            phases.advance(connection, project, participant)
        return feedback(item.phase, item.secret, right)

    def _refuse_correction(
        self,
        connection: Connection,
        project: Project,
        participant: Participant,
        item: _Item,
        saved_at: datetime,
        now: datetime,
    ) -> None:
        """Refuse to change an answer that something was made of, or that was given too long ago."""
        if item.phase == "training":
            raise Conflict("The answer was shown already, so this one cannot be changed.")
        if item.phase != participant.phase:
            raise Conflict("This part is over, so its answers cannot be changed.")
        if project.state != "open":
            raise Conflict(f"The project is {project.state}, so answers cannot be changed.")
        if now > saved_at + timedelta(minutes=float(project.settings["lease_minutes"])):
            raise Conflict("This was answered too long ago to be changed.")
        if item.group and project.load_kind().follows:
            later = (
                project_items.c.project_id == project.id,
                project_items.c.group_name == item.group,
                project_items.c.stage != item.stage,
                project_items.c.position > item.position,
            )
            if connection.execute(select(project_items.c.id).where(*later).limit(1)).first() is not None:
                raise Conflict("Others are at work on this answer by now, so it cannot be changed.")

    def _remember(
        self, connection: Connection, assignment_id: str, key: str, given: Given, told: Mapping[str, Any]
    ) -> None:
        row = {"assignment_id": assignment_id, "key": key, "digest": given.digest(), "seq": given.seq}
        row |= {"given": dict(given.values), "is_final": given.final, "saved_at": self.clock.now()}
        connection.execute(insert(answer_history).values(**row, status=200, answer=dict(told)))


def feedback(phase: str, secret: Mapping[str, Any], right: bool | None) -> dict[str, Any] | None:
    """Return what is said after a training item that has a gold answer."""
    if phase != "training" or secret["gold"] is None:
        return None
    return {"right": bool(right), "gold": secret["gold"], "words": secret["words"]}


def _times(given: Given, assignment: Assignment, now: datetime) -> dict[str, int]:
    """Return the times that were counted; no more than went by here, where the clock was not set back."""
    passed = int((now - assignment.leased_at).total_seconds() * 1000)
    elapsed = given.elapsed_ms if passed < 0 else min(given.elapsed_ms, passed)
    return {"active_ms": min(given.active_ms, elapsed), "elapsed_ms": elapsed}


def _item(connection: Connection, item_id: str) -> _Item:
    query = select(
        project_items.c.id,
        project_items.c.position,
        project_items.c.phase,
        project_items.c.group_name,
        project_items.c.stage,
        project_items.c.form,
        project_items.c.secret,
    )
    row = connection.execute(query.where(project_items.c.id == item_id)).one()
    return _Item(*row[:5], Form.of(row.form), row.secret)
