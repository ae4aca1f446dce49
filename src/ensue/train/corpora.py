"""Folders of prepared texts that several trainings share: one makes what is missing, the others wait and find it."""

from __future__ import annotations

import fcntl
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ensue.errors import EnsueError

INDEX = "corpus.json"
_LOCK = ".lock"
C = TypeVar("C")


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


def find_corpus(
    folder: Path, question: Mapping[str, Any], load: Callable[[Path, dict[str, Any]], C | None]
) -> C | None:
    """Load a corpus from its index in the folder; None where it answers another question or is not complete."""
    try:
        index = json.loads((folder / INDEX).read_text("utf-8"))
        if {key: index[key] for key in question} != json.loads(json.dumps(question)):
            return None
        return load(folder, index)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def find_or_make(
    folder: Path,
    question: Mapping[str, Any],
    load: Callable[[Path, dict[str, Any]], C | None],
    make: Callable[[], None],
) -> C:
    """Return the corpus that answers the question, made now where it is not in the folder."""
    with held(folder):
        found = find_corpus(folder, question, load)
        if found is None:
            make()
            found = find_corpus(folder, question, load)
    assert found is not None, "a corpus that was just made answers its question"
    return found


def source_state(path: Path) -> list[Any]:
    """Return size and time of the files a source is made of, so that a changed source is read again."""
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        stats = [(file, file.stat()) for file in files if file.is_file()]
    except OSError as error:
        raise EnsueError(f"{error.filename} could not be read: {error.strerror}.") from error
    return [[file.name, stat.st_size, stat.st_mtime_ns] for file, stat in stats]


def smallest_dtype(numbers: int) -> str:
    """Return the narrowest type that holds so many numbers."""
    return "uint16" if numbers <= 2**16 else "int32"
