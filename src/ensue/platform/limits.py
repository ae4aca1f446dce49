"""Run a function in a process of its own under limits of time and memory; what it is given may be hostile.

The process is `python -m ensue.platform.child FOLDER PARENT`: it reads `job.json` there, sets its own limits before
it imports anything else, and writes `result.json` whole. It never opens the database, and it ends with its parent.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ensue.atomic import write_json

_POLL = 0.02
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
    try:
        until = time.monotonic() + limits.seconds
        while _runs(process):
            if time.monotonic() > until:
                return Outcome("time", _too_long(limits))
            if not go_on():
                return Outcome("abandoned", None)
            time.sleep(_POLL)
    finally:
        _end(process)
    return _outcome(process.returncode, folder, limits)


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
