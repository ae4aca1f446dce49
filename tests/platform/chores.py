"""Functions that the tests run as jobs, in processes of their own."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from ensue.platform.refusals import Invalid


def double(number: int) -> int:
    return 2 * number


def slow(seconds: float, mark: str) -> str:
    """Say that it began, by a line in a file, and take its time."""
    with Path(mark).open("a") as file:
        file.write(f"{os.getpid()}\n")
    time.sleep(seconds)
    return "done"


def hungry(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))


def busy() -> None:
    while True:
        pass


def refuse(words: str) -> None:
    raise Invalid(words)


def leak(label: str) -> None:
    raise KeyError(label)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fill(path: str, megabytes: int) -> None:
    with Path(path).open("wb") as file:
        for _ in range(megabytes):
            file.write(bytes(1 << 20))


def surroundings() -> dict[str, Any]:
    return {
        "environment": sorted(os.environ),
        "session": os.getsid(0) == os.getpid(),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduler": os.sched_getscheduler(0),
    }
