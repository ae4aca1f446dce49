"""Assignments against a model of them: slots, leases, answers and keys, step by step, as the clock moves."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, settings
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

from ensue.benchmarks.people import kind as kinds
from ensue.platform.annotation import exporting
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import assignments, project_items
from ensue.platform.refusals import Conflict, Forbidden
from ensue.platform.service import Platform, Settings, opened
from tests.platform.annotation.working import CHAINED, Person, item, make, people
from tests.platform.conftest import NOON
from tests.support.effort import effort

LEASE = timedelta(minutes=30)
WANTED, PEOPLE, CONTROLS, RATE, MOST_MISSED = 2, 4, 5, 0.34, 1
WHO = st.integers(0, PEOPLE - 1)
WHICH = st.integers(0, 99)
LABELS = st.sampled_from(["yes", "yes", "no"])


class Spec(NamedTuple):
    """What an item is: how many it wants (None: everybody), and who wrote what it shows."""

    wanted: int | None
    author: int | None = None


class Work:
    """What an assignment should be; a lease that is over is nobody's until somebody asks."""

    def __init__(self, who: int, id: str, until: datetime) -> None:
        self.who, self.id, self.state, self.until = who, id, "leased", until
        self.seq, self.value, self.saved = -1, None, NOON  # type: tuple[int, str | None, datetime]
        self.keys: dict[str, tuple[Any, Any]] = {}

    def holds(self, now: datetime) -> bool:
        return self.state == "answered" or (self.state == "leased" and self.until > now)


class Machine(RuleBasedStateMachine):
    """Four people; two texts are written by two each, what somebody wrote is read by one other, and controls."""

    platform: Platform
    clock: SetClock

    @initialize()
    def begin(self) -> None:
        self.clock.time = NOON
        self.barred: set[int] = set()
        self.work: dict[tuple[int, str], Work] = {}
        controls = [item(f"c{number}", control=True) for number in range(CONTROLS)]
        self.items = {"w-a": Spec(WANTED), "w-b": Spec(WANTED)} | {
            f"c{n}": Spec(None) for n in range(CONTROLS)
        }
        facts: dict[str, Any] = {"control_rate": RATE, "most_missed": MOST_MISSED, "lease_minutes": 30}
        built = CHAINED.build(None, {}, 0).items
        self.project = make(self.platform, [*built, *controls], "chained", labels=WANTED, **facts)
        self.people: list[Person] = people(self.platform, self.project, PEOPLE)
        self.names = [person.now.pseudonym for person in self.people]
        self.number = 0
        for who in range(PEOPLE):
            self.take(who)

    def teardown(self) -> None:
        self.people[0].part.projects.delete("rain")

    def _full(self, key: str, who: int) -> bool:
        """Return whether others hold all that an item wants."""
        now, wanted = self.clock.now(), self.items[key].wanted
        others = (one for (other, id), one in self.work.items() if id == key and other != who)
        return wanted is not None and sum(one.holds(now) for one in others) >= wanted

    def _mine(self, who: int) -> dict[str, Work]:
        return {id: one for (other, id), one in self.work.items() if other == who}

    def _pick(self, which: int) -> tuple[int, str]:
        """Return one of the assignments there are, in the order in which they were given: names are of chance."""
        return list(self.work)[which % len(self.work)]

    def _bar(self, who: int) -> None:
        self.barred.add(who)
        for one in self._mine(who).values():
            if one.state in {"leased", "answered"}:
                one.state = "void"
        # What they wrote is not to be read any more; whoever holds it loses it.
        written = [id for id, spec in self.items.items() if spec.author == who]
        self.items |= {id: Spec(0, who) for id in written}
        for (_, id), one in self.work.items():
            if id in written and one.state == "leased":
                one.until = min(one.until, self.clock.now())

    @rule(who=WHO)
    def take(self, who: int) -> None:
        now, mine = self.clock.now(), self._mine(who)
        held = [one for one in mine.values() if one.state == "leased" and one.until > now]
        try:
            found = self.people[who].take()
        except Forbidden:
            assert who in self.barred
            return
        assert who not in self.barred
        if held:
            assert found == held[0].id
            held[0].until = now + LEASE
            return
        may = {
            id
            for id, spec in self.items.items()
            if spec.wanted is not None and spec.author != who and not self._full(id, who)
            if id not in mine or mine[id].state in {"leased", "released"}
        }
        if not isinstance(found, str):
            assert not may
            return
        key = self.people[who].key_of(found)
        if self.items[key].wanted is None:
            assert key not in mine or not mine[key].holds(now)  # a control is answered once
            assert may  # and comes only among other work
        else:
            assert key in may
        self._check_rate(key[0] == "c", [id for id, one in mine.items() if one.holds(now)])
        if key in mine:
            assert mine[key].id == found
            mine[key].state, mine[key].until = "leased", now + LEASE
        else:
            self.work[who, key] = Work(who, found, now + LEASE)

    def _check_rate(self, control: bool, held: list[str]) -> None:
        """A control is due by what is answered or held, wherever somebody's controls begin: none is got rid of."""
        share, controls = RATE * (len(held) + 1), sum(id[0] == "c" for id in held)
        if controls < min(math.floor(share), CONTROLS):
            assert control
        if controls >= math.ceil(share):
            assert not control

    @rule(who=WHO, label=LABELS)
    def take_and_answer(self, who: int, label: str) -> None:
        self.take(who)
        for key, one in self._mine(who).items():
            if one.state == "leased" and one.until > self.clock.now():
                self._save(who, key, label, final=True, back=False)

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH, label=LABELS, final=st.booleans(), back=st.booleans())
    def save(self, which: int, label: str, final: bool, back: bool) -> None:
        self._save(*self._pick(which), label, final=final, back=back)

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH, final=st.booleans())
    def save_late(self, which: int, final: bool) -> None:
        """Somebody is away until a lease is over and others took what is free, and then goes on."""
        who, key = self._pick(which)
        self.clock.move(minutes=31)
        for other in range(PEOPLE):
            if other != who:
                self.take(other)
        self._save(who, key, "yes", final=final, back=False)

    def _save(self, who: int, item_key: str, label: str, *, final: bool, back: bool) -> None:
        one, now, self.number = self.work[who, item_key], self.clock.now(), self.number + 1
        seq = one.seq if back else max(one.seq, 0) + 1
        if seq < 0:
            return
        key, body = f"key {self.number}", (label, final, seq)
        lost = one.state == "leased" and one.until <= now and self._full(item_key, who)
        late = one.state == "answered" and now > one.saved + LEASE
        read = one.state == "answered" and item_key.startswith("w-")  # others have it by now
        try:
            told = self.people[who].save(one.id, label, final=final, seq=seq, key=key)
        except Forbidden:
            assert who in self.barred
            return
        except Conflict:
            assert lost or late or read or one.state == "released"
            return
        assert who not in self.barred
        assert one.state in {"leased", "answered"}
        assert not lost
        assert not late
        assert not read
        if one.state == "leased":
            one.until = now + LEASE
        if not back and (final or one.state == "leased"):
            one.seq, one.value, one.saved = seq, label, now
            one.state = "answered" if final else one.state
        assert told["final"] == (one.state == "answered")
        assert told["seq"] == one.seq  # of what counts: a draft does not take the place of an answer
        one.keys[key] = (body, told)
        if one.state == "answered" and item_key.startswith("w-"):
            self.items[f"r-{item_key[2:]}-{self.names[who]}"] = Spec(1, who)
        given = self._mine(who).items()
        missed = [id for id, own in given if id[0] == "c" and own.state == "answered" and own.value == "no"]
        if final and len(missed) > MOST_MISSED:
            self._bar(who)

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH, again=WHICH)
    def send_again(self, which: int, again: int) -> None:
        """Send a save once more; what is drawn depends on nothing that the platform decides, which would be flaky."""
        who, item_key = self._pick(which)
        one = self.work[who, item_key]
        if not one.keys:
            return
        key = list(one.keys)[again % len(one.keys)]
        (label, final, seq), told = one.keys[key]
        assert self.people[who].save(one.id, label, final=final, seq=seq, key=key) == told

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH)
    def beat(self, which: int) -> None:
        who, item_key = self._pick(which)
        one, now = self.work[who, item_key], self.clock.now()
        lost = one.state == "leased" and one.until <= now and self._full(item_key, who)
        try:
            self.people[who].part.assigning.heartbeat(self.people[who].id, one.id)
        except Forbidden:
            assert who in self.barred
        except Conflict:
            assert lost or one.state == "released"
        else:
            assert who not in self.barred
            assert not lost
            if one.state == "leased":
                one.until = now + LEASE

    @precondition(lambda self: bool(self.work))
    @rule(which=WHICH)
    def give_back(self, which: int) -> None:
        who, item_key = self._pick(which)
        one = self.work[who, item_key]
        if who in self.barred:
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

    @rule()
    def free(self) -> None:
        """What the server does by itself every few seconds; it takes nothing from anybody at work."""
        self.people[0].part.assigning.free_abandoned()

    @rule(who=WHO)
    def exclude(self, who: int) -> None:
        if who in self.barred or len(self.barred) == PEOPLE - 1:
            return
        self.people[who].part.people.exclude("rain", self.names[who])
        self._bar(who)

    @invariant()
    def nobody_is_in_anothers_place(self) -> None:
        with self.platform.database.reading() as connection:
            rows = connection.execute(
                select(assignments).where(assignments.c.project_id == self.project.id)
            ).all()
            export = exporting.export_of(connection, self.project)
            known = connection.execute(
                select(project_items.c.id, project_items.c.wanted, project_items.c.secret).where(
                    project_items.c.project_id == self.project.id
                )
            ).all()
        keys = {row.id: row.secret["key"]["id"] for row in known}
        wanted = {row.id: row.wanted for row in known}
        assert set(keys.values()) == set(self.items)
        held = [row for row in rows if row.state in {"leased", "answered"}]
        slots = Counter((row.item_id, row.slot) for row in held if wanted[row.item_id] is not None)
        assert all(count == 1 for count in slots.values())
        # What is wanted of nobody any more was answered before it was withdrawn, and nobody holds it.
        assert all(0 <= slot < wanted[id] or wanted[id] == 0 for id, slot in slots)
        assert not [row for row in rows if row.state == "leased" and wanted[row.item_id] == 0]
        pairs = [(row.item_id, row.participant_id) for row in rows]
        assert len(set(pairs)) == len(pairs)
        for who, person in enumerate(self.people):
            given = [keys[row.item_id] for row in rows if row.participant_id == person.id]
            assert not {id for id in given if self.items[id].author == who}
        found = {(self.names.index(one.annotator), one.item): one.values["label"] for one in export.answers()}
        kept = {place: one.value for place, one in self.work.items() if one.state == "answered"}
        # What somebody wrote who is gone, and others read, counts no more.
        counts = {id for id, spec in self.items.items() if spec.wanted}
        assert found == {place: value for place, value in kept.items() if place[1] in counts}

    @invariant()
    def leases_are_those_of_the_model(self) -> None:
        with self.platform.database.reading() as connection:
            mine = (assignments.c.project_id == self.project.id, assignments.c.state == "leased")
            query = select(assignments.c.id, assignments.c.lease_until).where(*mine)
            found = {row.id: row.lease_until for row in connection.execute(query)}
        now = self.clock.now()
        live = {one.id: one.until for one in self.work.values() if one.state == "leased" and one.until > now}
        assert live == {id: until for id, until in found.items() if until > now}


def test_assignments_do_as_the_model_of_them(
    database_url: str, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(kinds._OWN, "chained", "tests.platform.annotation.working:CHAINED")
    with tempfile.TemporaryDirectory() as folder:
        given = Settings(home=Path(folder), database=database_url, clock=clock)
        with opened(given) as platform:
            Machine.platform, Machine.clock = platform, clock
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                Machine,
                settings=settings(
                    max_examples=effort(15, 150),
                    stateful_step_count=40,
                    deadline=None,
                    derandomize=True,
                    phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                ),
            )
