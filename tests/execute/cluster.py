"""A Ray cluster of two machines, both on this one, that neither sees other clusters nor leaves anything behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ensue

ray = pytest.importorskip("ray", reason="work on many machines needs Ray: pip install 'ensue[ray]'")

# Small batches that need nothing of each other, so that there are many shares.
SMALL = {"batch_tokens": 32, "share_prefixes": False}
# Seconds that a worker may take to come on a crowded machine.
PATIENT = 300
# How long Ray waits for its processes on a machine where many others want the processors too.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Else workers wait behind everything else that the machine does.
    "RAY_worker_niceness": "0",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_agent_register_timeout_ms": "300000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "300",
    # A worker is lost when a test says so, not when other tests fill the memory.
    "RAY_memory_monitor_refresh_ms": "0",
}
# Ray gives each node 30 seconds to come, which it does not let be changed.
_ATTEMPTS = 5


class Cluster:
    """Two machines with room for one worker each; a driver is joined to it."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as RayCluster

        # Nothing but what workers need: no logs are read, nothing is scaled.
        head = {
            "num_cpus": 1,
            "include_dashboard": False,
            "include_log_monitor": False,
            "no_monitor": True,
        }
        self._cluster: Any = RayCluster()
        try:
            self._cluster.add_node(**head)
            self._second = self._cluster.add_node(num_cpus=1)
            self.address: str = self._cluster.address
            ray.init(address=self.address, log_to_driver=False)
        except BaseException:
            self.close()
            raise

    def lose_second(self) -> None:
        """Have the second machine gone, with all that runs on it."""
        self._cluster.remove_node(self._second, allow_graceful=False)

    def close(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


@contextlib.contextmanager
def cluster_of_two() -> Iterator[Cluster]:
    """Have a cluster, whose workers find these tests."""
    places = [str(Path(__file__).parents[2]), *sys.path]
    # The names of sockets below it may have no more than 107 characters. As Ray's own default, since it writes the
    # address of a cluster into the default folder whether that is there or not.
    temporary = tempfile.mkdtemp(prefix="ray-")
    changed = {
        **_ENVIRONMENT,
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "RAY_TMPDIR": temporary,
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        opened = _started()
        try:
            yield opened
        finally:
            opened.close()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def await_workers(executor: ensue.RayExecutor, count: int) -> None:
    """Wait until so many workers have come and have nothing to do."""
    until = time.monotonic() + PATIENT
    while len(executor.loads()) != count:
        assert time.monotonic() < until, executor.about()
        time.sleep(0.1)


def _started() -> Cluster:
    for _ in range(_ATTEMPTS - 1):
        # Of TimeoutError, RuntimeError and Exception itself, whichever part of Ray had not come.
        with contextlib.suppress(Exception):
            return Cluster()
    return Cluster()
