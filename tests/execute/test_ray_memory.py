"""A worker that Ray itself ends because its machine runs out of memory: told so, after three tries, in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.effort import LONG

pytest.importorskip("ray", reason="work on many machines needs Ray: pip install 'ensue[ray]'")
pytestmark = pytest.mark.skipif(not LONG, reason="three gigabytes of memory are filled by make long")

# A driver of its own, for the cluster it starts has another idea of when memory is short.
DRIVER = """
import ensue
from ensue.errors import RunFailed
from ensue.models.request import Request
from ensue.scoring.engine import score
from tests.execute import toys

with ensue.RayExecutor(1, patience=300) as executor:
    scorer = executor.load(toys.load_greedy)
    assert len(score(scorer, [Request("a word")]).scores) == 1
    try:
        score(scorer, [Request("all of it")])
    except RunFailed as error:
        print(error)
    # And others go on.
    assert len(score(scorer, [Request("a word")]).scores) == 1
"""
# What a worker may take before its machine is said to be full, of the eight that it would take.
ALLOWED = 3 * 2**30


def test_a_worker_that_fills_its_machine_is_ended_and_the_work_given_up() -> None:
    total, left = memory()
    if left < 3 * ALLOWED:
        pytest.skip(f"the machine has {left / 2**30:.0f} GiB of memory left, and this test wants nine")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), *sys.path])),
        "RAY_memory_usage_threshold": f"{(total - left + ALLOWED) / total:.4f}",
        "RAY_memory_monitor_refresh_ms": "100",
        "RAY_worker_niceness": "0",
    }
    # The names of sockets below it may have no more than 107 characters.
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as temporary:
        done = subprocess.run(
            [sys.executable, "-c", DRIVER],
            env={**environment, "RAY_TMPDIR": temporary},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr
    assert "3 workers were lost over it, the last because its machine ran out of memory" in done.stdout


def memory() -> tuple[int, int]:
    """Return the bytes of memory that this machine has, and those that are left."""
    rows = (line.split() for line in Path("/proc/meminfo").read_text("utf-8").splitlines())
    found = {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}
    return found["MemTotal"], found["MemAvailable"]
