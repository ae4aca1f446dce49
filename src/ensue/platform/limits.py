"""Run a function in a process of its own under limits of time and memory; what it is given may be hostile.

The process is `python -m ensue.platform.child FOLDER PARENT`: it reads `job.json` there, sets its own limits before
it imports anything else, and writes `result.json` whole. It never opens the database, and it ends with its parent.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ensue.atomic import write_json

_POLL = 0.02
_LOOK = 0.1  # how often it is asked whether to go on, where the end of a process is told
_NICER = 15
# What a process needs of ours; no passwords or tokens that may be in the environment.
_ENVIRONMENT = (
    "PATH",
    "PYTHONPATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "ENSUE_DATA",
    "ENSUE_HOME",
    "SYSTEMROOT",
)
# One thread: time is counted, and each thread of a numerical library has memory of its own.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Limits:
    """The most that a process may take."""

    seconds: float = 300.0
    megabytes: int = 1500
    file_megabytes: int = 500  # the largest file it may write


class Outcome(NamedTuple):
    """How a function ended: `kind` is done, refused, memory, time, stopped, abandoned or broken.

    `value` is what it returned (done), a sentence for the user (refused, memory, time), or what to write into the
    server's log (stopped, broken), without the words of an error.
    """

    kind: str
    value: Any


def run_limited(
    function: str,
    arguments: Mapping[str, Any],
    limits: Limits,
    folder: Path,
    go_on: Callable[[], bool] = lambda: True,
) -> Outcome:
    """Run `module:object` on keyword arguments of JSON, in an empty folder; stop it where `go_on` says no.

    `go_on` is asked again and again while the function runs, so a heartbeat can live in it.
    """
    asked = {"function": function, "arguments": dict(arguments)}
    asked["limits"] = {
        "seconds": limits.seconds,
        "megabytes": limits.megabytes,
        "files": limits.file_megabytes,
    }
    write_json(folder / "job.json", asked)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment |= dict.fromkeys(_THREADS, "1") | {"PYTHONHASHSEED": "0", "HF_HUB_OFFLINE": "1"}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ensue.platform.child", str(folder), str(os.getpid())],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            start_new_session=True,
        )
    _stand_back(process.pid)
    try:
        until = time.monotonic() + limits.seconds
        with _pausing(process.pid) as pause:
            while _runs(process):
                if time.monotonic() > until:
                    return Outcome("time", _too_long(limits))
                if not go_on():
                    return Outcome("abandoned", None)
                pause()
    finally:
        _end(process)
    return _outcome(process.returncode, folder, limits)


@contextmanager
def _pausing(process: int) -> Iterator[Callable[[], object]]:
    """Give what waits a little; on Linux until the process ends, so that nobody is woken for nothing."""
    if sys.platform != "linux":
        yield lambda: time.sleep(_POLL)
        return
    told = os.pidfd_open(process)
    try:
        ended = select.poll()
        ended.register(told, select.POLLIN)
        yield lambda: ended.poll(1000 * _LOOK)
    finally:
        os.close(told)


def _stand_back(process: int) -> None:
    """Let everybody who reads a page go before a process from its first moment; it has time."""
    with suppress(OSError):  # it may have ended, or the system may not allow it
        os.setpriority(os.PRIO_PROCESS, process, min(19, os.getpriority(os.PRIO_PROCESS, 0) + _NICER))
        if sys.platform == "linux":
            os.sched_setscheduler(process, os.SCHED_BATCH, os.sched_param(0))


def _outcome(code: int, folder: Path, limits: Limits) -> Outcome:
    try:
        found = json.loads((folder / "result.json").read_text("utf-8"))
    except (OSError, ValueError):
        if code == -signal.SIGXCPU:
            return Outcome("time", _too_long(limits))
        return Outcome("stopped", f"the process ended with {code} and no result")
    if found["kind"] == "memory":
        return Outcome(
            "memory", f"It needs more than {limits.megabytes:,} MB of memory, the most there is for it."
        )
    return Outcome(found["kind"], found["value"])


def _too_long(limits: Limits) -> str:
    return f"It took longer than {limits.seconds:,.0f} s, the longest it may."


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a process runs, without taking note of its end: until then its number is nobody else's."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and all it began."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
