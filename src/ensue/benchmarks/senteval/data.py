"""SentEval's data folder: which tasks have all their files, and what these hold."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue.benchmarks.senteval.catalog import PROBING_FILES, Task
from ensue.benchmarks.senteval.readers import read_task
from ensue.benchmarks.senteval.rows import TaskData
from ensue.errors import EnsueError


@dataclass(frozen=True)
class Suite:
    """The tasks that could be read, the files that the others lack, and a digest of what was read."""

    source: str
    tasks: tuple[TaskData, ...]
    missing: dict[str, str]
    fingerprint: str


def read_suite(source: str, tasks: Sequence[Task], limit: int | None = None) -> Suite:
    """Read the tasks whose files are there; with `limit` only so many rows of each file (and each split).

    `source` is the folder that holds `downstream` and `probing`, or one of these.
    """
    root = Path(source)
    if not root.is_dir():
        raise EnsueError(f"{source} is not a folder; name SentEval's data folder with --data.")
    if limit is not None and limit < 1:
        raise EnsueError(f"The limit of examples is {limit}, but must be at least 1.")
    digest = hashlib.sha256()
    found, missing = [], {}
    for task in tasks:
        paths = [_path(root, task, file) for file in task.files]
        absent = next((p for p in paths if not p.is_file()), None)
        if absent is not None:
            missing[task.name] = absent.name
            continue
        data = read_task(task, paths, limit)
        for name, rows in data.parts.items():
            if len(rows) == 0:
                raise EnsueError(f"{task.name} has no {name} examples in {paths[0].parent}.")
        _digest(digest, data)
        found.append(data)
    if not found:
        lacking = ", ".join(f"{name} ({file})" for name, file in missing.items())
        raise EnsueError(f"{source} has the files of none of the tasks asked for; missing: {lacking}.")
    return Suite(source, tuple(found), missing, digest.hexdigest())


def _path(root: Path, task: Task, file: str) -> Path:
    """Where a file of a task is, or would be."""
    folder = "probing" if task.name in PROBING_FILES else "downstream"
    places = [root / folder, root, root.parent / folder]
    return next((place / file for place in places if (place / file).is_file()), root / folder / file)


def _digest(digest: Any, data: TaskData) -> None:
    digest.update(f"{data.task.name}\0{data.classes}\0".encode())
    for name, rows in data.parts.items():
        digest.update(f"{name}\0".encode())
        for place, row in enumerate(zip(*rows.texts, strict=True)):
            digest.update("\0".join((rows.ids[place], repr(rows.gold[place]), *row, "\n")).encode())
