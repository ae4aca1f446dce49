"""kill -9 at random points, of the server and of the processes that do its jobs: nothing is lost or done twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.platform.processes import children

ROOT = Path(__file__).parents[2]
# ENSUE_KILLS=200 for the long run that docs/platform.md reports.
ROUNDS = int(os.environ.get("ENSUE_KILLS", "4"))


@contextmanager
def server(home: Path, url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    places = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.platform.killed_server", str(home / "home"), url],
            env={**os.environ, "PYTHONPATH": places},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        assert address, (home / "log").read_text()[-2000:]
        yield process, address
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="The processes of a server are found in /proc."
)
def test_every_job_that_was_taken_is_done_once_whatever_is_killed(database_url: str, tmp_path: Path) -> None:
    chance = random.Random(15)
    taken: dict[str, int] = {}
    number = 0
    for _ in range(ROUNDS):
        with server(tmp_path, database_url) as (process, address):
            until = time.monotonic() + chance.uniform(0.0, 1.5)
            with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
                while time.monotonic() < until:
                    number += 1
                    taken[client.post(f"/api/v1/double/{number}").json()["id"]] = number
                    if chance.random() < 0.2:
                        for child in children(process.pid)[:1]:
                            with suppress(ProcessLookupError):
                                os.kill(child, signal.SIGKILL)
                    time.sleep(chance.uniform(0.0, 0.3))
            process.kill()
    with server(tmp_path, database_url) as (process, address):
        until = time.monotonic() + 120 + 5 * len(taken)  # enough for a machine that does much else
        while time.monotonic() < until:
            found = httpx.get(f"{address}/api/v1/double", trust_env=False, timeout=60).json()
            if all(state not in {"queued", "running"} for state, _, _ in found.values()):
                break
            time.sleep(0.1)
        assert httpx.get(f"{address}/healthz", trust_env=False, timeout=60).status_code == 200
    # What was answered is there; what was cut off while it was asked may be there too.
    assert taken.keys() <= found.keys()
    for job, (state, reason, results) in found.items():
        if state == "failed":  # begun ten times and killed each time
            assert "It was begun 10 times and never ended" in reason
            assert results == []
            continue
        assert state == "graded"
        assert len(results) == 1
        if job in taken:
            assert results == [2 * taken[job]]
    assert sum(state == "graded" for state, _, _ in found.values()) >= len(found) * 0.8
