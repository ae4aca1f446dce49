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
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, and_, bindparam, insert, select, update

from ensue.benchmarks.people.checking import answer_problems, settled
from ensue.benchmarks.people.form import Form
from ensue.platform.annotation import assigning, following, people, phases, projects
from ensue.platform.annotation.assigning import Assigning, Assignment, no_assignment
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


class _Known(NamedTuple):
    """All that decides about a save: whose, of what, what was saved last and what came with the same key."""

    assignment: Assignment
    participant: Participant
    project: Project
    item: _Item
    seq: int | None  # of what was saved last, None where nothing was
    saved_at: datetime | None
    digest: str | None  # of what came with this key, None where nothing did
    answer: dict[str, Any] | None


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
            if not self.database.is_sqlite:
                self._lock(connection, participant_id, assignment_id, given)
            known = _known(connection, participant_id, assignment_id, key)
            if known.digest is not None:
                if known.digest != given.digest():
                    raise Invalid("This Idempotency-Key came with something else before; use a new one.")
                return dict(known.answer or {})
            known.participant.must_work()
            if problems := answer_problems(known.item.form, given.values, final=given.final):
                raise Unanswered(problems)
            told = self._save(connection, known, given)
            self._remember(connection, assignment_id, key, given, told)
            if given.final and told["final"] and known.item.group and known.project.load_kind().follows:
                following.revise(connection, known.project, known.item.group)
            return told

    def _lock(self, connection: Connection, participant_id: str, assignment_id: str, given: Given) -> None:
        """Have whatever else would change what decides about a save wait, where others write at the same time."""
        project_id = self.assigning.own(connection, participant_id, assignment_id).project_id
        if given.final and self.projects.get(connection, project_id).load_kind().follows:
            # One at a time, so that whoever is last sees what all others said.
            self.projects.get(connection, project_id, locked=True)
        self.people.get(connection, participant_id, locked=True)
        self.assigning.own(connection, participant_id, assignment_id, locked=True)

    def _save(self, connection: Connection, known: _Known, given: Given) -> dict[str, Any]:
        assignment, participant, project, item = known[:4]
        now = self.clock.now()
        was_final = assignment.state == "answered"
        if was_final:
            assert known.saved_at is not None
            self._refuse_correction(connection, project, participant, item, known.saved_at, now)
        until = self.assigning.keep(connection, project, assignment)
        # What was overtaken replaces nothing, and a draft does not take the place of an answer.
        is_late = (known.seq is not None and given.seq <= known.seq) or (was_final and not given.final)
        told: dict[str, Any] = {"seq": known.seq if is_late else given.seq, "saved_at": now.isoformat()}
        told |= {"lease_until": until.isoformat(), "final": was_final, "feedback": None}
        if is_late:
            return told
        times = _times(given, assignment, now)
        values = settled(item.form, given.values) if given.final else dict(given.values)
        row = {"given": values, "is_final": given.final, "seq": given.seq, "saved_at": now, **times}
        statement = _INSERT if known.seq is None else _UPDATE
        connection.execute(
            statement, {"assignment_id" if known.seq is None else "assignment": assignment.id, **row}
        )
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
        connection.execute(_FINISH, {"assignment": assignment.id, **done})
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
        connection.execute(_REMEMBER, {**row, "status": 200, "answer": dict(told)})


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


# Statements that every save needs are put together once.
_INSERT = insert(answers)
_UPDATE = update(answers).where(answers.c.assignment_id == bindparam("assignment"))
_REMEMBER = insert(answer_history)
_FINISH = update(assignments).where(assignments.c.id == bindparam("assignment"))
_ITEM = tuple(
    project_items.c[name] for name in ("id", "position", "phase", "group_name", "stage", "form", "secret")
)
_PARTS = (assigning.COLUMNS, people.COLUMNS, projects.COLUMNS, _ITEM)


@cache
def _known_query() -> Select[Any]:
    """Return the query for all that decides about a save, in the order of `_Known`."""
    participants, all_projects = people.COLUMNS[0].table, projects.COLUMNS[0].table
    same = and_(answer_history.c.assignment_id == assignments.c.id, answer_history.c.key == bindparam("key"))
    joined = (
        assignments.join(participants, participants.c.id == assignments.c.participant_id)
        .join(all_projects, all_projects.c.id == assignments.c.project_id)
        .join(project_items, project_items.c.id == assignments.c.item_id)
        .join(answers, answers.c.assignment_id == assignments.c.id, isouter=True)
        .join(answer_history, same, isouter=True)
    )
    columns = [column for part in _PARTS for column in part]
    columns += [answers.c.seq, answers.c.saved_at, answer_history.c.digest, answer_history.c.answer]
    mine = (assignments.c.id == bindparam("assignment"), participants.c.id == bindparam("participant"))
    return select(*columns).select_from(joined).where(*mine)


def _known(connection: Connection, participant_id: str, assignment_id: str, key: str) -> _Known:
    """Return all that decides about a save; another's assignment is not found."""
    given = {"assignment": assignment_id, "participant": participant_id, "key": key}
    row = connection.execute(_known_query(), given).first()
    if row is None:
        raise no_assignment()
    values = iter(row)
    parts = [list(islice(values, len(part))) for part in _PARTS]
    id, position, phase, group, stage, form, secret = parts[3]
    item = _Item(id, position, phase, group, stage, Form.of(form), secret)
    return _Known(Assignment(*parts[0]), Participant(*parts[1]), Project(*parts[2]), item, *values)
