"""The process that runs one function under limits: `python -m ensue.platform.child FOLDER PARENT`.

Nothing but the standard library is imported before the limits stand. Of an error that is not a `Refusal` only its
kind and the places in the code are told, since its words may quote a private label.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1


def main(folder: Path, parent: int) -> None:
    """Read what is asked, run it, and write how it ended."""
    _end_with(parent)
    asked = json.loads((folder / "job.json").read_text("utf-8"))
    _limit(asked["limits"])
    try:
        kind, value = _run(asked["function"], asked["arguments"])
        _write(folder, kind, value)
    except MemoryError:
        _write(folder, "memory", None)


def _run(function: str, arguments: dict[str, Any]) -> tuple[str, Any]:
    from ensue.lazy import load
    from ensue.platform.refusals import Refusal

    try:
        return "done", load(function)(**arguments)
    except MemoryError:
        raise
    except Refusal as refusal:
        return "refused", str(refusal)
    except Exception as error:
        return "broken", _told(error)


def _told(error: BaseException) -> str:
    """Return the kind of an error and where in the code it arose."""
    places, frame = [], error.__traceback__
    while frame is not None:
        places.append(f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}")
        frame = frame.tb_next
    return f"{type(error).__name__} at {' '.join(places[-6:])}"


def _write(folder: Path, kind: str, value: Any) -> None:
    from ensue.atomic import write_json

    write_json(folder / "result.json", {"kind": kind, "value": value})


def _limit(limits: dict[str, float]) -> None:
    os.umask(0o077)
    _set(resource.RLIMIT_CORE, 0)
    _set(resource.RLIMIT_DATA, int(limits["megabytes"]) << 20)
    _set(resource.RLIMIT_FSIZE, int(limits["files"]) << 20)
    # The parent counts the time that passes; this ends a process that burns it after the parent is gone.
    _set(resource.RLIMIT_CPU, int(limits["seconds"]) + 1)


def _set(which: int, value: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _end_with(parent: int) -> None:
    """Have this process killed when the one that began it is gone; on Linux by the kernel."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
