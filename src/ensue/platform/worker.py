"""Do the jobs of the queue, each in a process of its own, and record how each ended."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ensue.errors import EnsueError
from ensue.platform.home import Home
from ensue.platform.jobs import LEASE, Job, Queue
from ensue.platform.limits import Outcome, run_limited
from ensue.platform.logs import tell

_IDLE = 0.5  # seconds between looks at an empty queue
_TROUBLE = 5.0  # and after something failed
_REAP = 5.0
_SWEEP = 3600.0
_HEARTBEAT = LEASE.total_seconds() / 4


class Worker:
    """Threads of the server that claim jobs and wait for the processes that do them."""

    def __init__(
        self,
        queue: Queue,
        home: Home,
        at_once: int = 1,
        sweep: Callable[[], None] = lambda: None,
        regularly: Sequence[Callable[[], None]] = (),
    ) -> None:
        self.queue, self.home, self.at_once = queue, home, at_once
        self.sweep, self.regularly = sweep, regularly
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._held: set[str] = set()
        self._lock = threading.Lock()

    def start(self) -> None:
        """Put back what was under way when the server stopped, and begin."""
        if again := self.queue.recover():
            tell("jobs put back", count=again)
        names = [f"jobs-{number}" for number in range(self.at_once)]
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        self._threads.append(threading.Thread(target=self._keep_order, name="jobs-order", daemon=True))
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End what is under way, put it back in the queue, and wait for the threads."""
        self._stopping.set()
        self.queue.added.set()
        for thread in self._threads:
            thread.join()

    def alive(self) -> bool:
        """Return whether every thread is at work."""
        return all(thread.is_alive() for thread in self._threads)

    def _work(self) -> None:
        while not self._stopping.is_set():
            try:
                job = self.queue.claim()
                if job is not None:
                    self.do(job)
                    continue
            except Exception as error:
                # A database that is away for a while, say; the lease brings the job back.
                tell("a job was left", level=logging.ERROR, error=error)
                self._stopping.wait(_TROUBLE)
            self.queue.added.wait(_IDLE)
            self.queue.added.clear()

    def _keep_order(self) -> None:
        swept = -_SWEEP
        while not self._stopping.wait(_REAP):
            with self._lock:
                held = set(self._held)
            try:
                self.queue.reap(held)
                if time.monotonic() - swept >= _SWEEP:
                    swept = time.monotonic()
                    self.sweep()
            except Exception as error:
                tell("the queue was not looked after", level=logging.ERROR, error=error)
            for part in self.regularly:
                try:
                    part()
                except Exception as error:
                    tell("something was not looked after", level=logging.ERROR, error=error)

    def do(self, job: Job) -> None:
        """Do one job that was claimed, and record how it ended."""
        assert job.lease is not None
        with self._lock:
            self._held.add(job.lease)
        begun = time.monotonic()
        tell("job begun", job=job.id, kind=job.kind, subject=job.subject, attempt=job.attempts)
        try:
            outcome = self._run(job)
            recorded = self._record(job, outcome)
        finally:
            with self._lock:
                self._held.discard(job.lease)
        seconds = round(time.monotonic() - begun, 2)
        facts: dict[str, Any] = {"job": job.id, "outcome": outcome.kind, "seconds": seconds}
        if outcome.kind in {"broken", "stopped"}:
            facts["why"] = outcome.value
        tell("job ended" if recorded else "job ended, its lease lost", **facts)

    def _run(self, job: Job) -> Outcome:
        assert job.lease is not None
        kind = self.queue.kinds[job.kind]
        beat = time.monotonic()

        def go_on() -> bool:
            nonlocal beat
            if self._stopping.is_set():
                return False
            if time.monotonic() - beat < _HEARTBEAT:
                return True
            beat = time.monotonic()
            return self.queue.heartbeat(job)

        folder = self.home.work_folder(job.lease)
        try:
            return run_limited(kind.function, self.queue.prepare(job), kind.limits, folder, go_on)
        except EnsueError as error:
            return Outcome("refused", str(error))
        finally:
            with suppress(OSError):
                shutil.rmtree(folder)

    def _record(self, job: Job, outcome: Outcome) -> bool:
        match outcome.kind:
            case "done":
                return self.queue.finish(job, outcome.value)
            case "time":
                return self.queue.fail(job, "expired", outcome.value)
            case "refused" | "memory":
                return self.queue.fail(job, "failed", outcome.value)
            case "stopped":
                return self.queue.give_back(job, "its process was stopped")
            case "abandoned":
                # Either the server stops, or the lease is lost and nothing is changed.
                return self.queue.release(job)
            case _:
                words = f"It failed on the server; tell whoever runs it that it was job {job.id}."
                return self.queue.fail(job, "failed", words)
