"""Write files and folders atomically: complete in place, or not there at all."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError, os_errors

# Threads of one process may write the same file; each writes a part of its own.
_NUMBERS = itertools.count()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a path beside `path` to write a file or folder to, and rename it to `path` at the end of the block.

    Where the block raises, the unfinished part is removed and what `path` held before stays. An OSError becomes one
    sentence.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "scores.txt"
    >>> with replacing(place) as part:
    ...     _ = part.write_text("0.9")
    >>> place.read_text()
    '0.9'
    """
    part = path.with_name(f".{path.name}.{os.getpid()}-{next(_NUMBERS)}.part")
    try:
        with os_errors(path, "written"):
            yield part
            _sync(part)
            part.replace(path)
    finally:
        with suppress(OSError):
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def write_atomic(path: Path, pieces: Iterable[str], *, make_folder: bool = False) -> Path:
    """Write text, given in pieces, to a file."""
    if make_folder:
        with os_errors(path, "written"):
            path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as part, part.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
    return path


def check_place(path: Path | None) -> None:
    """Refuse a file that could not be written, before time is spent on what it will hold."""
    if path is None:
        return
    folder = path.absolute().parent
    if not folder.is_dir() or (path.exists() and not path.is_file()):
        raise EnsueError(f"{path} cannot be written: it is not a file or lies in a folder that is not there.")
    if not os.access(folder, os.W_OK):
        raise EnsueError(f"{path} cannot be written: its folder is read-only.")


def write_json(path: Path, value: Any) -> Path:
    """Write a JSON document, indented, to a file; NaN and infinities raise ValueError."""
    return write_atomic(path, [json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"])


def write_json_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write one JSON document a line to a file; NaN and infinities raise ValueError."""
    return write_atomic(path, (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))


def _sync(part: Path) -> None:
    """Have the bytes of a file on the disk before its name changes."""
    if part.is_file():
        with part.open("rb") as file:
            os.fsync(file.fileno())


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold a lock file against other processes, waiting where one of them has it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_folders(path: Path) -> list[Path]:
    """Make a folder and those above it; return the ones that were not there, the innermost first."""
    missing = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    path.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those that are empty, in the order given."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def make_readable(folder: Path) -> None:
    """Give every file in a folder the mode a new file has; safetensors writes its own for the owner alone."""
    new = folder / f".mode.{os.getpid()}"
    new.touch()
    mode = new.stat().st_mode & 0o777
    new.unlink()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
