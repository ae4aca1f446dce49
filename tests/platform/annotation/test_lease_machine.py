"""Assignments against a model of them: slots, leases, answers and keys, step by step, as the clock moves."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

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
from sqlalchemy import select

from ensue.platform.annotation import exporting
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import assignments
from ensue.platform.refusals import Conflict, Forbidden
from ensue.platform.service import Platform, Settings, opened
from tests.platform.annotation.working import Person, item, make, people
from tests.platform.conftest import NOON

LEASE = timedelta(minutes=30)
ITEMS, WANTED, PEOPLE = 3, 2, 3
WHO = st.integers(0, PEOPLE - 1)
WHICH = st.integers(0, ITEMS * PEOPLE - 1)


class Work:
    """What an assignment should be; a lease that is over is nobody's until somebody asks."""

    def __init__(self, who: int, id: str, until: datetime) -> None:
        self.who, self.id, self.state, self.until = who, id, "leased", until
        self.seq, self.value, self.saved = -1, None, NOON  # type: tuple[int, str | None, datetime]
        self.keys: dict[str, tuple[Any, Any]] = {}

    def holds(self, now: datetime) -> bool:
        return self.state == "answered" or (self.state == "leased" and self.until > now)


class Machine(RuleBasedStateMachine):
    """Three people and three items, each for two of them."""

    platform: Platform
    clock: SetClock

    @initialize()
    def begin(self) -> None:
        self.clock.time = NOON
        self.excluded: set[int] = set()
        self.work: dict[tuple[int, str], Work] = {}
        items = [item(f"w{number}") for number in range(ITEMS)]
        self.project = make(self.platform, items, labels=WANTED, control_rate=0.0, lease_minutes=30)
        self.people: list[Person] = people(self.platform, self.project, PEOPLE)
        self.number = 0
        for who in range(PEOPLE):
            self.take(who)

    def teardown(self) -> None:
        self.people[0].part.projects.delete("rain")

    def _others(self, key: str, who: int) -> int:
        now = self.clock.now()
        return sum(one.holds(now) for (other, id), one in self.work.items() if id == key and other != who)

    def _pick(self, which: int) -> tuple[int, str, Work]:
        """Return one of the assignments there are."""
        who, key = sorted(self.work)[which % len(self.work)]
        return who, key, self.work[who, key]

    @rule(who=WHO)
    def take_more(self, who: int) -> None:
        self.take(who)

    @rule(who=WHO)
    def take(self, who: int) -> None:
        now = self.clock.now()
        mine = {id: one for (other, id), one in self.work.items() if other == who}
        held = [one for one in mine.values() if one.state == "leased" and one.until > now]
        try:
            found = self.people[who].take()
        except Forbidden:
            assert who in self.excluded
            return
        assert who not in self.excluded
        if held:
            assert found == held[0].id
            held[0].until = now + LEASE
            return
        may = {
            id
            for id in (f"w{number}" for number in range(ITEMS))
            if (id not in mine or mine[id].state in {"leased", "released"}) and self._others(id, who) < WANTED
        }
        if found is None:
            assert not may
            return
        assert isinstance(found, str)
        key = self.people[who].key_of(found)
        assert key in may
        if key in mine:
            assert mine[key].id == found
            mine[key].state, mine[key].until = "leased", now + LEASE
        else:
            self.work[who, key] = Work(who, found, now + LEASE)

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH, label=st.sampled_from(["yes", "no"]), final=st.booleans(), back=st.booleans())
    def save(self, which: int, label: str, final: bool, back: bool) -> None:
        who, item_key, one = self._pick(which)
        now, self.number = self.clock.now(), self.number + 1
        seq = one.seq if back else max(one.seq, 0) + 1
        if seq < 0:
            return
        key, body = f"key {self.number}", (label, final, seq)
        try:
            told = self.people[who].save(one.id, label, final=final, seq=seq, key=key)
        except Forbidden:
            assert who in self.excluded
            return
        except Conflict:
            lost = one.state == "leased" and one.until <= now and self._others(item_key, who) >= WANTED
            late = one.state == "answered" and now > one.saved + LEASE
            assert lost or late or one.state == "released"
            return
        assert who not in self.excluded
        assert one.state in {"leased", "answered"}
        assert one.state == "answered" or one.until > now or self._others(item_key, who) < WANTED
        if one.state == "leased":
            one.until = now + LEASE
        if not back and (final or one.state == "leased"):
            one.seq, one.value, one.saved = seq, label, now
            one.state = "answered" if final else one.state
        assert told["final"] == (one.state == "answered")
        assert told["seq"] == (one.seq if back else seq)
        one.keys[key] = (body, told)

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH, data=st.data())
    def send_again(self, which: int, data: st.DataObject) -> None:
        who, _, one = self._pick(which)
        if not one.keys:
            return
        key = data.draw(st.sampled_from(sorted(one.keys)))
        (label, final, seq), told = one.keys[key]
        assert self.people[who].save(one.id, label, final=final, seq=seq, key=key) == told

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH)
    def beat(self, which: int) -> None:
        who, item_key, one = self._pick(which)
        now = self.clock.now()
        try:
            self.people[who].part.assigning.heartbeat(self.people[who].id, one.id)
        except Forbidden:
            assert who in self.excluded
        except Conflict:
            lost = one.state == "leased" and one.until <= now and self._others(item_key, who) >= WANTED
            assert lost or one.state == "released"
        else:
            assert who not in self.excluded
            if one.state == "leased":
                one.until = now + LEASE

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH)
    def give_back(self, which: int) -> None:
        who, _, one = self._pick(which)
        if who in self.excluded:
            return
        lapsed = one.state == "leased" and one.until <= self.clock.now()
        self.people[who].part.assigning.release(self.people[who].id, one.id)
        # Of one that is over, it is as good whether somebody asked before.
        if one.state == "leased" and (not lapsed or self._state(one) == "released"):
            one.state = "released"

    def _state(self, one: Work) -> str:
        with self.platform.database.reading() as connection:
            query = select(assignments.c.state).where(assignments.c.id == one.id)
            return str(connection.execute(query).scalar_one())

    @rule(minutes=st.sampled_from([1, 10, 29, 31, 90, -20]))
    def wait(self, minutes: int) -> None:
        now = self.clock.now()
        if minutes < 0 and any(one.state == "leased" and one.until <= now for one in self.work.values()):
            return  # what was freed already does not come back with the clock
        self.clock.move(minutes=minutes)

    @rule(who=WHO)
    def exclude(self, who: int) -> None:
        if who in self.excluded or len(self.excluded) == PEOPLE - 1:
            return
        person = self.people[who]
        person.part.people.exclude("rain", person.now.pseudonym)
        self.excluded.add(who)
        for (other, _), one in self.work.items():
            if other == who and one.state in {"leased", "answered"}:
                one.state = "void"

    @invariant()
    def nobody_is_in_anothers_place(self) -> None:
        with self.platform.database.reading() as connection:
            rows = connection.execute(
                select(assignments).where(assignments.c.project_id == self.project.id)
            ).all()
            export = exporting.export_of(connection, self.project)
        held = Counter((row.item_id, row.slot) for row in rows if row.state in {"leased", "answered"})
        assert all(count == 1 for count in held.values())
        assert all(0 <= slot < WANTED for _, slot in held)
        pairs = [(row.item_id, row.participant_id) for row in rows]
        assert len(set(pairs)) == len(pairs)
        names = {person.entered.participant.pseudonym: who for who, person in enumerate(self.people)}
        found = {(names[one.annotator], one.item): one.values["label"] for one in export.answers()}
        kept = {place: one.value for place, one in self.work.items() if one.state == "answered"}
        assert found == kept


def test_assignments_do_as_the_model_of_them(database_url: str, clock: SetClock) -> None:
    with tempfile.TemporaryDirectory() as folder:
        given = Settings(home=Path(folder), database=database_url, clock=clock)
        with opened(given) as platform:
            Machine.platform, Machine.clock = platform, clock
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                Machine,
                settings=settings(
                    max_examples=12,
                    stateful_step_count=30,
                    deadline=None,
                    derandomize=True,
                    suppress_health_check=list(HealthCheck),
                ),
            )
