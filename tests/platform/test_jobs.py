"""The queue against a model of it in memory, with workers that die, come back late and clocks that jump."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, delete, func, insert, select

from ensue.platform.clock import SetClock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import events, jobs
from ensue.platform.jobs import ATTEMPTS, LEASE, Job, Kind, Queue
from tests.platform.conftest import NOON

# Ids are random, so things are picked by number.
WHICH = st.integers(0, 1000)


def queue_on(database: Database, clock: SetClock, worker: str = "here") -> Queue:
    """A queue whose jobs write down, in the transaction that ends them, that they ended."""
    queue = Queue(database, clock, worker)

    def write(connection: Connection, job: Job, *more: Any) -> None:
        facts = {"at": clock.now(), "kind": "ended", "subject": job.id, "details": {}}
        connection.execute(insert(events).values(**facts))

    queue.add_kind(Kind("grade", "json:dumps", done=write, ended=write))
    return queue


def state_of(queue: Queue, job_id: str) -> Job:
    with queue.database.reading() as connection:
        return queue.find(connection, job_id)


class Jobs(RuleBasedStateMachine):
    """Everything that may happen to the queue, and what must then be so."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database, self.clock = database, SetClock(NOON)
        self.queue = queue_on(database, self.clock)
        self.model: dict[str, dict[str, Any]] = {}  # by id, in the order they were added
        self.leases: list[Job] = []  # every lease ever given
        with database.writing() as connection:
            connection.execute(delete(jobs))
            connection.execute(delete(events))

    @initialize(waiting=st.integers(0, 3), running=st.integers(0, 3))
    def begin(self, waiting: int, running: int) -> None:
        """Something is under way from the beginning; most rules do nothing to an empty queue."""
        for _ in range(running):
            self.add(None)
            self.claim()
        for number in range(waiting):
            self.add(100 * number or None)

    def leased(self, job: Job) -> bool:
        return self.model[job.id]["lease"] == job.lease

    def put_back(self, job_id: str, *, counts: bool = True) -> None:
        known = self.model[job_id]
        known["lease"] = None
        if not counts:
            known["attempts"] -= 1
        known["state"] = "failed" if known["attempts"] >= ATTEMPTS else "queued"

    @rule(wait=st.none() | st.integers(1, 300))
    def add(self, wait: int | None) -> None:
        with self.database.writing() as connection:
            limit = timedelta(seconds=wait) if wait else None
            made = self.queue.add(connection, "grade", wait=limit, arguments={"n": len(self.model)})
        until = self.clock.now() + limit if limit else None
        self.model[made] = {"state": "queued", "attempts": 0, "lease": None, "until": None, "expires": until}

    @rule()
    def claim(self) -> None:
        waiting = [job_id for job_id, known in self.model.items() if known["state"] == "queued"]
        job = self.queue.claim()
        assert (job.id if job else None) == (waiting[0] if waiting else None)
        if job is not None:
            assert job.lease
            assert all(job.lease != other.lease for other in self.leases)
            known = self.model[job.id]
            known |= {"state": "running", "lease": job.lease, "until": self.clock.now() + LEASE}
            known["attempts"] += 1
            assert job.attempts == known["attempts"]
            self.leases.append(job)

    @precondition(lambda self: self.leases)
    @rule(which=WHICH, how=st.sampled_from(["heartbeat", "finish", "fail", "give_back", "release"]))
    def end(self, which: int, how: str) -> None:
        """Whoever was ever given a lease comes back, however late; half of the time one who holds it still."""
        holding = [job for job in self.leases if self.leased(job)]
        among = holding if holding and which % 2 else self.leases
        job = among[which // 2 % len(among)]
        held = self.leased(job)
        known = self.model[job.id]
        match how:
            case "heartbeat":
                assert self.queue.heartbeat(job) is held
                if held:
                    known["until"] = self.clock.now() + LEASE
            case "finish":
                assert self.queue.finish(job, {"score": 1}) is held
                if held:
                    known |= {"state": "graded", "lease": None}
            case "fail":
                assert self.queue.fail(job, "expired", "It took too long.") is held
                if held:
                    known |= {"state": "expired", "lease": None}
            case "give_back":
                assert self.queue.give_back(job, "stopped") is held
                if held:
                    self.put_back(job.id)
            case "release":
                assert self.queue.release(job) is held
                if held:
                    self.put_back(job.id, counts=False)

    @precondition(lambda self: self.model)
    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        job_id = list(self.model)[which % len(self.model)]
        known = self.model[job_id]
        with self.database.writing() as connection:
            cancelled = self.queue.cancel(connection, job_id, "Its owner cancelled it.")
        assert cancelled is (known["state"] in {"queued", "running"})
        if cancelled:
            known |= {"state": "cancelled", "lease": None}

    @rule(seconds=st.sampled_from([-30, 0, 59, 61, 400]), held_too=st.booleans())
    def reap(self, seconds: int, held_too: bool) -> None:
        self.clock.move(seconds=seconds)
        now = self.clock.now()
        spared = {known["lease"] for known in self.model.values() if known["lease"]} if held_too else set()
        self.queue.reap(spared)
        for job_id, known in self.model.items():
            if known["state"] == "running" and known["until"] < now and known["lease"] not in spared:
                self.put_back(job_id)
            elif known["state"] == "queued" and known["expires"] and known["expires"] < now:
                known["state"] = "expired"

    @rule()
    def restart(self) -> None:
        """The server is killed and started: another queue object on the same database."""
        self.queue = queue_on(self.database, self.clock)
        running = [job_id for job_id, known in self.model.items() if known["state"] == "running"]
        assert self.queue.recover() == len(running)
        for job_id in running:
            self.put_back(job_id)

    @rule()
    def another_server_starts(self) -> None:
        """What another home's server does is not touched."""
        assert queue_on(self.database, self.clock, "elsewhere").recover() == 0

    @invariant()
    def as_in_the_model(self) -> None:
        place = 0
        with self.database.reading() as connection:
            told = connection.execute(select(events.c.subject, func.count()).group_by(events.c.subject))
            ended = {row[0]: row[1] for row in told}
            for job_id, known in self.model.items():
                job = self.queue.find(connection, job_id)
                assert (job.state, job.attempts, job.lease) == (
                    known["state"],
                    known["attempts"],
                    known["lease"],
                )
                over = job.state not in {"queued", "running"}
                # Graded once, ended once, told once.
                assert ended.get(job_id, 0) == int(over)
                assert (job.finished_at is not None) is over
                assert bool(job.reason) is (over and job.state != "graded")
                assert job.attempts <= ATTEMPTS
                place += job.state == "queued"
                expected = place if job.state == "queued" else 0 if job.state == "running" else None
                assert self.queue.place(connection, job) == expected


def test_the_queue_does_as_its_model_does(database: Database) -> None:
    run_state_machine_as_test(
        lambda: Jobs(database), settings=settings(max_examples=40, stateful_step_count=25, deadline=None)
    )


def test_many_workers_at_once_never_get_the_same_job(database: Database, clock: SetClock) -> None:
    queue = queue_on(database, clock)
    with database.writing() as connection:
        made = [queue.add(connection, "grade") for _ in range(40)]
    claimed: list[str] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        mine = queue_on(database, clock, f"worker-{number}")
        while (job := mine.claim()) is not None:
            with lock:
                claimed.append(job.id)
            assert mine.finish(job, None)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # SKIP LOCKED may pass over a job that is being claimed; none is left and none is done twice.
    while (job := queue.claim()) is not None:
        claimed.append(job.id)
    assert sorted(claimed) == sorted(made)


def test_a_hook_that_fails_leaves_the_job_as_it_was(database: Database, clock: SetClock) -> None:
    queue = queue_on(database, clock)

    def broken(connection: Connection, job: Job, result: Any) -> None:
        raise RuntimeError("the disk is full")

    queue.add_kind(Kind("grade", "json:dumps", done=broken))
    with database.writing() as connection:
        made = queue.add(connection, "grade")
    job = queue.claim()
    assert job is not None
    try:
        queue.finish(job, 1)
    except RuntimeError:
        pass
    else:
        raise AssertionError("the error was swallowed")
    assert state_of(queue, made).state == "running"
    clock.move(seconds=LEASE.total_seconds() + 1)
    assert queue.reap() == 1
    assert state_of(queue, made).state == "queued"


def test_a_job_of_a_kind_that_is_not_known_waits(database: Database, clock: SetClock) -> None:
    queue = queue_on(database, clock)
    with database.writing() as connection:
        queue.add(connection, "from a newer version")
        known = queue.add(connection, "grade")
    job = queue.claim()
    assert job is not None
    assert job.id == known
    assert queue.claim() is None
