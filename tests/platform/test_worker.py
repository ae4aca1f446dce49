"""The worker on both databases: how jobs end, kill -9 of what does them and of the server, and stopping in order."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select

from ensue.platform.database.schema import events
from ensue.platform.jobs import ATTEMPTS, Job, Kind
from ensue.platform.limits import Limits
from ensue.platform.refusals import Busy
from ensue.platform.service import Platform
from ensue.platform.worker import Worker
from tests.platform.test_jobs import state_of
from tests.platform.test_limits import CHORES, importable

__all__ = ["importable"]


def add(platform: Platform, function: str, limits: Limits | None = None, **arguments: Any) -> str:
    """Put a function of the tests in the queue; what it gives is written down with its end."""

    def done(connection: Connection, job: Job, result: Any) -> None:
        facts = {
            "at": platform.clock.now(),
            "kind": "result",
            "subject": job.id,
            "details": {"result": result},
        }
        connection.execute(insert(events).values(**facts))

    platform.queue.add_kind(Kind(function, f"{CHORES}:{function}", limits or Limits(), done=done))
    with platform.database.writing() as connection:
        return platform.queue.add(connection, function, arguments=arguments)


def results(platform: Platform, job_id: str) -> list[Any]:
    with platform.database.reading() as connection:
        rows = connection.execute(select(events.c.details).where(events.c.subject == job_id))
        return [row.details["result"] for row in rows]


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "it did not happen within a minute"
        time.sleep(0.02)


def over(platform: Platform, job_id: str) -> Job:
    wait_for(lambda: state_of(platform.queue, job_id).state not in {"queued", "running"})
    return state_of(platform.queue, job_id)


def test_jobs_are_done_and_each_end_has_its_state_and_reason(platform: Platform) -> None:
    with platform.working():
        doubled = add(platform, "double", number=4)
        refused = add(platform, "refuse", words="RTE.jsonl has 3 lines; 300 are expected.")
        broken = add(platform, "leak", label="entailment")
        hungry = add(platform, "hungry", Limits(megabytes=300), megabytes=600)
        late = add(platform, "busy", Limits(seconds=1))
        assert over(platform, doubled).state == "graded"
        assert results(platform, doubled) == [8]
        ended = [over(platform, job) for job in (refused, broken, hungry, late)]
    assert [job.state for job in ended] == ["failed", "failed", "failed", "expired"]
    assert [job.reason for job in ended] == [
        "RTE.jsonl has 3 lines; 300 are expected.",
        f"It failed on the server; tell whoever runs it that it was job {broken}.",
        "It needs more than 300 MB of memory, the most there is for it.",
        "It took longer than 1 s, the longest it may.",
    ]
    assert list(platform.home.work.iterdir()) == []


def test_files_are_looked_at_a_few_at_a_time_and_too_many_are_refused(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.platform.service.CHECKS_WAITING", 3)
    small = Platform(platform.settings, platform.home, platform.database)
    mark = tmp_path / "mark"
    outcomes: list[Any] = []

    def look() -> None:
        try:
            arguments = {"seconds": 1.0, "mark": str(mark)}
            outcomes.append(small.run_limited(f"{CHORES}:slow", arguments, Limits()).kind)
        except Busy as refusal:
            outcomes.append(refusal.status)

    threads = [threading.Thread(target=look) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [503, 503, "done", "done", "done"]
    assert len(set(mark.read_text().split())) == 3
    assert list(small.home.work.iterdir()) == []


def test_a_process_that_is_killed_each_time_fails_after_its_last_attempt(platform: Platform) -> None:
    with platform.working():
        job = over(platform, add(platform, "killed"))
    assert (job.state, job.attempts) == ("failed", ATTEMPTS)
    assert job.reason == "It was begun 10 times and never ended: its process was stopped."


def test_kill_9_of_the_process_begins_the_job_again_and_it_is_done_once(
    platform: Platform, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    with platform.working():
        made = add(platform, "slow", seconds=0.5, mark=str(mark))
        wait_for(lambda: mark.exists() and bool(mark.read_text()))
        os.kill(int(mark.read_text()), signal.SIGKILL)
        job = over(platform, made)
    assert (job.state, job.attempts) == ("graded", 2)
    assert results(platform, made) == ["done"]


def test_a_server_that_stops_in_order_puts_its_job_back_unbegun(platform: Platform, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with platform.working():
        made = add(platform, "slow", seconds=60, mark=str(mark))
        wait_for(lambda: mark.exists() and bool(mark.read_text()))
    job = state_of(platform.queue, made)
    assert (job.state, job.attempts, job.lease) == ("queued", 0, None)
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()


def test_a_job_that_is_cancelled_while_it_runs_is_stopped(
    platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.platform.worker._HEARTBEAT", 0.1)
    mark = tmp_path / "mark"
    with platform.working():
        made = add(platform, "slow", seconds=60, mark=str(mark))
        wait_for(lambda: mark.exists() and bool(mark.read_text()))
        with platform.database.writing() as connection:
            assert platform.queue.cancel(connection, made, "Its owner cancelled it.")
        wait_for(lambda: not Path(f"/proc/{mark.read_text().strip()}").exists())
        after = over(platform, add(platform, "double", number=1))
    assert after.state == "graded"
    assert state_of(platform.queue, made).state == "cancelled"
    assert results(platform, made) == []


def test_a_result_that_comes_after_the_lease_was_lost_is_not_recorded(
    platform: Platform, tmp_path: Path
) -> None:
    made = add(platform, "double", number=3)
    first = platform.queue.claim()
    assert first is not None
    # The server is thought dead and the job begun again elsewhere, yet the first goes on.
    platform.queue.recover()
    second = platform.queue.claim()
    assert second is not None
    worker = Worker(platform.queue, platform.home)
    worker.do(second)
    worker.do(first)
    assert results(platform, made) == [6]
    with platform.database.reading() as connection:
        done = select(func.count()).select_from(events).where(events.c.kind != "home")
        assert connection.execute(done).scalar_one() == 1
