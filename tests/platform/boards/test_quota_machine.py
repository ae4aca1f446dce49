"""Submissions against a model of them: quotas, keys, gradings and publication, step by step, as the clock moves."""

from __future__ import annotations

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete, insert, select

from ensue.platform.boards.board import Boards
from ensue.platform.boards.handed import Facts, Kept
from ensue.platform.boards.reading import Reader
from ensue.platform.boards.submissions import Submissions
from ensue.platform.boards.views import Views
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import board_tasks, boards, metadata, new_id
from ensue.platform.refusals import Conflict, Invalid, NotFound, TooMany
from ensue.platform.service import Platform, Settings, opened
from tests.platform.boards.handing import FACTS
from tests.platform.conftest import NOON
from tests.support.effort import effort

DAY, MONTH = 2, 4
PEOPLE = st.sampled_from([0, 0, 0, 1])
_VOID = {"failed", "expired", "cancelled"}


class Expected:
    """What a submission should be."""

    def __init__(self, owner: int, at: datetime, key: str | None, file: str) -> None:
        self.owner, self.at, self.key, self.file = owner, at, key, file
        self.state, self.published, self.scores = "queued", False, []  # type: tuple[str, bool, list[float]]

    def counts(self, since: datetime) -> bool:
        return (self.state not in _VOID or bool(self.scores)) and self.at >= since


class Machine(RuleBasedStateMachine):
    """Two people and one board; jobs are ended by the test as a worker would."""

    platform: Platform
    clock: SetClock

    @initialize()
    def empty(self) -> None:
        platform, self.clock = self.platform, self.clock
        with platform.database.writing() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(delete(table))
            self.board_id = new_id()
            row: dict[str, Any] = {"name": "small", "title": "Small", "suite": "glue", "split": "dev"}
            row |= {"definition": {}, "quota_day": DAY, "quota_month": MONTH, "created_at": NOON}
            row |= {"labels_version": 1, "labels_digest": "0", "is_open": True}
            connection.execute(insert(boards).values(id=self.board_id, **row))
            column = {"board_id": self.board_id, "place": 0, "task": "GLUE", "metric": "score"}
            connection.execute(insert(board_tasks).values(**column, is_main=True))
        self.clock.time = NOON
        self.people = [platform.accounts.add(f"user{n}@example.org", "participant") for n in range(2)]
        self.submissions = Submissions(platform)
        self.views = Views(Boards(platform), platform.queue)
        self.expected: dict[str, Expected] = {}
        self.running: list[tuple[Any, str]] = []

    def spent(self, who: int) -> bool:
        now = self.clock.now()
        day = now.replace(hour=0, minute=0, second=0, microsecond=0)
        mine = [one for one in self.expected.values() if one.owner == who]
        today = sum(one.counts(day) for one in mine)
        return today >= DAY or sum(one.counts(day.replace(day=1)) for one in mine) >= MONTH

    @rule(
        who=PEOPLE,
        key=st.sampled_from([None, None, None, "a", "b"]),
        file=st.sampled_from(["1" * 64, "2" * 64]),
    )
    def hand_in(self, who: int, key: str | None, file: str) -> None:
        kept = Kept("s.zip", file, 1)
        same = [id for id, one in self.expected.items() if key and (one.owner, one.key) == (who, key)]
        call = lambda: self.submissions.accept(self.people[who], "small", Facts.read(FACTS), kept, key)  # noqa: E731
        if same and self.expected[same[0]].file == file:
            assert call() == same[0]
        elif same:
            with pytest.raises(Invalid, match="Idempotency-Key"):
                call()
        elif self.spent(who):
            with pytest.raises(TooMany) as refused:
                call()
            assert refused.value.retry_at > self.clock.now()
            self.tried(who, refused.value.retry_at)
        else:
            made = call()
            assert made not in self.expected
            self.expected[made] = Expected(who, self.clock.now(), key, file)

    def tried(self, who: int, retry_at: datetime) -> None:
        """At the time a refusal names the quota is not spent; a moment before it is."""
        now = self.clock.time
        self.clock.time = retry_at
        assert not self.spent(who)
        self.clock.time = retry_at - timedelta(seconds=1)
        assert self.spent(who)
        self.clock.time = now

    @rule(hours=st.sampled_from([1, 1, 13, 24, 24 * 15]))
    def time_passes(self, hours: int) -> None:
        self.clock.move(hours=hours)

    @precondition(lambda self: self.clock.time > NOON + timedelta(days=3))
    @rule()
    def clock_is_set_back(self) -> None:
        self.clock.move(days=-2)

    @rule()
    def begin(self) -> None:
        job = self.platform.queue.claim()
        if job is not None:
            self.running.append((job, str(job.subject)))

    @precondition(lambda self: self.running)
    @rule(score=st.floats(0, 1, width=16))
    def end_well(self, score: float) -> None:
        job, submission = self.running.pop(0)
        version = self.version()
        row = {"task": "GLUE", "metric": "score", "value": score, "ci95": [None, None], "n": 9, "clusters": 9}
        result = {"score": score, "metrics": [row | {"settings": {}}], "diagnostics": [], "notes": []}
        result |= {"not_scored": {}, "covers": "", "labels_version": version, "version": "0"}
        one = self.expected[submission]
        recorded = self.platform.queue.finish(job, result)
        assert recorded == (one.state != "cancelled")
        assert not self.platform.queue.finish(job, result)
        if recorded:
            one.state = "graded"
            one.scores.append(score)

    @precondition(lambda self: self.running)
    @rule(state=st.sampled_from(["failed", "expired"]))
    def end_badly(self, state: str) -> None:
        job, submission = self.running.pop(0)
        one = self.expected[submission]
        if self.platform.queue.fail(job, state, "It was not done."):
            # What was graded before and cannot be again has failed, whatever stopped it.
            one.state = "failed" if one.scores else state

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), who=PEOPLE)
    def cancel(self, data: st.DataObject, who: int) -> None:
        submission = data.draw(st.sampled_from(sorted(self.expected, key=list(self.expected).index)))
        one = self.expected[submission]
        if one.owner != who:
            with pytest.raises(NotFound):
                self.submissions.cancel(self.people[who], submission)
        elif one.state != "queued":
            with pytest.raises(Conflict):
                self.submissions.cancel(self.people[who], submission)
        else:
            self.submissions.cancel(self.people[who], submission)
            one.state = "cancelled"

    @precondition(lambda self: self.expected)
    @rule(data=st.data(), who=PEOPLE, anonymous=st.booleans(), back=st.booleans())
    def publish_or_withdraw(self, data: st.DataObject, who: int, anonymous: bool, back: bool) -> None:
        submission = data.draw(st.sampled_from(sorted(self.expected, key=list(self.expected).index)))
        one, user = self.expected[submission], self.people[who]
        wrong = NotFound if one.owner != who else None
        if back:
            if wrong or not one.published:
                with pytest.raises(wrong or Conflict):
                    self.submissions.withdraw(user, submission)
            else:
                self.submissions.withdraw(user, submission)
                one.published = False
        elif wrong or one.state != "graded":
            with pytest.raises(wrong or Conflict):
                self.submissions.publish(user, submission, anonymous=anonymous)
        else:
            self.submissions.publish(user, submission, anonymous=anonymous)
            one.published = True

    @rule()
    def regrade(self) -> None:
        busy = {submission for _, submission in self.running}
        waiting = {row.subject for row in self.queued()}
        wanted = [id for id, one in self.expected.items() if one.scores and id not in busy | waiting]
        assert self.submissions.regrade("small")["regraded"] == len(wanted)

    def version(self) -> int:
        with self.platform.database.reading() as connection:
            return int(connection.execute(select(boards.c.labels_version)).scalar_one())

    def queued(self) -> list[Any]:
        jobs = metadata.tables["jobs"]
        with self.platform.database.reading() as connection:
            return list(connection.execute(select(jobs).where(jobs.c.state == "queued")))

    @invariant()
    def everything_is_as_expected(self) -> None:
        if not hasattr(self, "expected"):
            return
        with self.platform.database.reading() as connection:
            for who, user in enumerate(self.people):
                found = {one["id"]: one for one in self.views.own(connection, user)}
                mine = {id: one for id, one in self.expected.items() if one.owner == who}
                assert set(found) == set(mine)
                for id, one in mine.items():
                    told = "running" if found[id]["state"] == "running" else one.state
                    assert found[id]["state"] == told
                    assert (told == "running") <= (one.state == "queued")
                    assert [past["score"] for past in found[id]["history"]] == [
                        round(s, 3) for s in one.scores
                    ]
                    assert (found[id]["published_at"] is not None) == one.published
                    assert (found[id]["scores"] is not None) == (one.state == "graded")
            on_board = {row.entry.id for row in Reader(Boards(self.platform)).show("small").rows}
            stands = {id for id, one in self.expected.items() if one.published and one.state == "graded"}
            assert on_board == stands


def test_submissions_do_as_the_model_of_them(database_url: str, clock: SetClock) -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = Settings(home=Path(folder), database=database_url, clock=clock)
        with opened(given) as platform:
            Machine.platform, Machine.clock = platform, clock
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                Machine,
                settings=settings(
                    max_examples=effort(15, 200),
                    stateful_step_count=40,
                    deadline=None,
                    derandomize=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
