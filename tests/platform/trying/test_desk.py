"""The desk: who gets which text, what becomes of it when a worker is lost or nobody looks, and what is kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ensue.platform.clock import SetClock
from ensue.platform.refusals import Busy, Invalid, NotFound, TooMany
from ensue.platform.trying.desk import (
    ALONE,
    FIELDS,
    KEPT,
    LEASE,
    LONGEST,
    UNWATCHED,
    Desk,
    Offer,
    Progress,
    checked,
)
from tests.platform.conftest import NOON

SMALL, LARGE = Offer("profile", "small"), Offer("profile", "large")
TEXT = {"text": "One rises. Two sets."}


@pytest.fixture
def desk(clock: SetClock) -> Desk:
    return Desk(clock)


def test_what_is_offered_is_what_connected_workers_have(desk: Desk, clock: SetClock) -> None:
    assert desk.offers() == []
    with pytest.raises(Busy):
        desk.ask(SMALL, TEXT, "here")
    one, other = desk.connect([SMALL]), desk.connect([SMALL, LARGE])
    assert desk.offers() == [LARGE, SMALL]
    desk.disconnect(other)
    assert desk.offers() == [SMALL]
    clock.move(seconds=LEASE.total_seconds() + 1)
    assert desk.offers() == []
    with pytest.raises(NotFound):
        desk.take(one)


def test_a_text_goes_through_the_queue_and_is_gone_in_the_end(desk: Desk, clock: SetClock) -> None:
    worker = desk.connect([SMALL, LARGE])
    first, other, second = (desk.ask(offer, TEXT, f"{n}") for n, offer in enumerate((SMALL, LARGE, SMALL)))
    # Places are those among the texts for the same model.
    assert [desk.look(id).place for id in (first, other, second)] == [1, 1, 2]
    leased = desk.take(worker)
    assert leased is not None
    assert (leased.offer, dict(leased.texts)) == (SMALL, TEXT)
    assert [desk.look(id).place for id in (first, other, second)] == [None, 1, 1]
    desk.beat(worker, leased.lease, Progress(1, 2, "sentences"))
    seen = desk.look(first)
    assert (seen.state, seen.progress, seen.result) == ("running", (1, 2, "sentences"), None)
    desk.finish(worker, leased.lease, "found")
    for again in (desk.finish, desk.fail):
        with pytest.raises(NotFound):
            again(worker, leased.lease, "twice")
    seen = desk.look(first)
    assert (seen.state, seen.result, seen.gone_at) == ("done", "found", NOON + KEPT)
    assert desk._requests[first].texts == {}
    clock.move(seconds=KEPT.total_seconds())
    assert desk.look(first).result == "found"
    clock.move(seconds=1)
    with pytest.raises(NotFound):
        desk.look(first)


def test_a_lost_worker_gives_its_text_back_once_and_no_result_comes_twice(
    desk: Desk, clock: SetClock
) -> None:
    lost = desk.connect([SMALL])
    id = desk.ask(SMALL, TEXT, "here")
    before = desk.take(lost)
    clock.move(seconds=LEASE.total_seconds() + 1)
    other = desk.connect([SMALL])
    assert (desk.look(id).state, desk.look(id).place) == ("waiting", 1)
    after = desk.take(other)
    assert before is not None
    assert after is not None
    # The first one was only slow.
    with pytest.raises(NotFound):
        desk.finish(lost, before.lease, "late")
    with pytest.raises(NotFound):
        desk.finish(other, before.lease, "with a lease of another")
    clock.move(seconds=LEASE.total_seconds() + 1)
    seen = desk.look(id)
    assert (seen.state, seen.reason) == (
        "failed",
        "The worker was lost while it read this text, twice; try a shorter one.",
    )


def test_a_worker_that_leaves_in_order_does_not_count_as_lost(desk: Desk) -> None:
    id = None
    for _ in range(4):
        worker = desk.connect([SMALL])
        id = id or desk.ask(SMALL, TEXT, "here")
        assert desk.take(worker) is not None
        desk.disconnect(worker)
        assert desk.look(id).state == "waiting"


def test_what_nobody_looks_at_what_nobody_reads_and_what_takes_too_long_ends(
    desk: Desk, clock: SetClock
) -> None:
    worker = desk.connect([SMALL])
    closed = desk.ask(SMALL, TEXT, "closed the page")
    seconds = 0.0
    while seconds <= UNWATCHED.total_seconds():
        clock.move(seconds=5)
        seconds += 5
        desk._workers[worker].seen_at = clock.now()
    assert desk.offers() == [SMALL]
    with pytest.raises(NotFound):
        desk.look(closed)
    assert desk.take(worker) is None

    alone = desk.ask(SMALL, TEXT, "here")
    desk.disconnect(worker)
    assert desk.look(alone).attended is False
    clock.move(seconds=ALONE.total_seconds() + 1)
    assert desk.look(alone).reason == (
        "The worker that has this model went away and none came back; try again later."
    )

    worker = desk.connect([SMALL])
    long = desk.ask(SMALL, TEXT, "here")
    leased = desk.take(worker)
    assert leased is not None
    for _ in range(int(LONGEST / timedelta(seconds=10))):
        clock.move(seconds=10)
        desk.beat(worker, leased.lease, Progress())
        assert desk.look(long).state == "running"
    clock.move(seconds=1)
    assert desk.look(long).reason == "It took longer than 10 minutes; try a shorter text."
    with pytest.raises(NotFound):
        desk.beat(worker, leased.lease, Progress())


def test_one_visitor_has_three_and_the_queue_has_an_end(desk: Desk) -> None:
    worker = desk.connect([SMALL])
    ids = [desk.ask(SMALL, TEXT, "here") for _ in range(3)]
    with pytest.raises(TooMany):
        desk.ask(SMALL, TEXT, "here")
    desk.forget(ids[0])
    with pytest.raises(NotFound):
        desk.look(ids[0])
    leased = desk.take(worker)
    assert leased is not None
    desk.fail(worker, leased.lease, "It is no text.")
    desk.ask(SMALL, TEXT, "here")
    desk.ask(SMALL, TEXT, "here")
    for number in range(37):
        desk.ask(SMALL, TEXT, f"{number}")
    with pytest.raises(Busy):
        desk.ask(SMALL, TEXT, "late")


def test_texts_are_cleaned_and_bounded() -> None:
    assert checked("profile", {"text": "  A\r\nb\rc\x00d\ud800 ", "summary": "left out"}) == {
        "text": "A\nb\nc d"
    }
    for kind, fields in FIELDS.items():
        full = {name: "x" * most for name, most in fields.items()}
        assert checked(kind, full) == full
        for name, most in fields.items():
            for wrong in ("x" * (most + 1), " \n", "\x00"):
                with pytest.raises(Invalid, match=f"The {name} "):
                    checked(kind, {**full, name: wrong})
    with pytest.raises(Invalid):
        checked("other", TEXT)


class Desks(RuleBasedStateMachine):
    """Visitors, workers and time in any order: a text is with one worker at most, and ends once."""

    @initialize()
    def open(self) -> None:
        self.clock = SetClock(NOON)
        self.desk = Desk(self.clock)
        self.workers: list[str] = []
        self.asked: list[str] = []
        self.leases: list[tuple[str, str, str]] = []  # worker, lease, what its result would be
        self.results: dict[str, str] = {}  # lease to result, where it was taken

    @rule(offers=st.sampled_from([(SMALL,), (LARGE,), (SMALL, LARGE)]))
    def connect(self, offers: tuple[Offer, ...]) -> None:
        self.workers.append(self.desk.connect(offers))

    @rule(offer=st.sampled_from([SMALL, LARGE]), by=st.sampled_from("abcd"))
    def ask(self, offer: Offer, by: str) -> None:
        try:
            self.asked.append(self.desk.ask(offer, TEXT, by))
        except (Busy, TooMany):
            pass
        else:
            assert offer in self.desk.offers()

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        try:
            leased = self.desk.take(worker)
        except NotFound:
            return
        if leased is not None:
            self.leases.append((worker, leased.lease, f"result {len(self.leases)}"))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), what=st.sampled_from(["beat", "finish", "fail"]))
    def report(self, data: st.DataObject, what: str) -> None:
        worker, lease, result = data.draw(st.sampled_from(self.leases))
        try:
            if what == "beat":
                self.desk.beat(worker, lease, Progress(1, 2, "x"))
                return
            (self.desk.finish if what == "finish" else self.desk.fail)(worker, lease, result)
        except NotFound:
            return
        assert lease not in self.results
        self.results[lease] = result

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(self.asked))
        try:
            self.desk.forget(id)
        except NotFound:
            return
        with pytest.raises(NotFound):
            self.desk.look(id)

    @precondition(lambda self: self.workers)
    @rule(data=st.data())
    def disconnect(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        try:
            self.desk.disconnect(worker)
        except NotFound:
            return

    @rule(seconds=st.sampled_from([1, 5, 13, 100, 200, 1000, -30]))
    def wait(self, seconds: int) -> None:
        self.clock.move(seconds=seconds)

    @invariant()
    def every_text_is_in_one_place(self) -> None:
        if not hasattr(self, "desk"):
            return
        held = [one for one in self.desk._requests.values() if one.state == "running"]
        assert len({one.lease for one in held}) == len(held)
        assert len(held) <= len(self.leases)
        for one in self.desk._requests.values():
            assert one.attempts <= 2
            assert one.is_over == (one.state in {"done", "failed"})
            assert bool(one.texts) != one.is_over
            if one.state == "done":
                assert one.result in self.results.values()


Desks.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None)
test_desks = Desks.TestCase
