"""A folder that several trainings share: one makes what is missing, the others wait and find it whole."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ensue.errors import EnsueError

_LOCK = ".lock"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder, made if need be, against other processes; where one has it, say so and wait for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w")
    except OSError as error:
        raise EnsueError(
            f"{folder} cannot be written: {error.strerror}; choose another --corpora."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Another process is preparing {folder}; waiting for it.", file=sys.stderr, flush=True)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
