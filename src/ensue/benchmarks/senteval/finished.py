"""The answers a run has found so far, kept in its folder so that a killed run need not train again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from ensue.benchmarks.senteval.answering import Given
from ensue.benchmarks.senteval.rows import TaskData
from ensue.errors import EnsueError

_PREFIX = ".answers-"
_KEY, _DEV, _SPLIT = "key", "dev_accuracy", "split-"


class Finished:
    """One small file a task and layer, good only for the question it was made for."""

    def __init__(self, folder: Path | None, question: dict[str, Any]) -> None:
        self._folder = folder
        self._key = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()

    def load(self, data: TaskData, layer: int | None) -> Given | None:
        """The answers; None where there are none, they answer another question, or the file is not whole."""
        path = self._path(data, layer)
        if path is None or not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as held:
                if str(held[_KEY]) != self._key:
                    return None
                dev = float(held[_DEV])
                by_split = {n.removeprefix(_SPLIT): held[n] for n in held.files if n.startswith(_SPLIT)}
        except (OSError, ValueError, KeyError, EOFError):
            return None
        return Given(by_split, None if np.isnan(dev) else dev)

    def save(self, data: TaskData, layer: int | None, given: Given) -> None:
        """Write answers whole or not at all."""
        path = self._path(data, layer)
        if path is None:
            return
        temporary = path.with_name(f"{path.name}.part")
        dev = np.nan if given.dev_accuracy is None else given.dev_accuracy
        arrays: dict[str, Any] = {_KEY: np.str_(self._key), _DEV: np.float64(dev)}
        arrays |= {f"{_SPLIT}{split}": values for split, values in given.by_split.items()}
        try:
            with temporary.open("wb") as file:
                np.savez(file, **arrays)
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise EnsueError(
                f"{path} cannot be written: {error.strerror}; finished tasks are kept, make room and run again "
                f"with --resume."
            ) from error

    def clear(self) -> None:
        """Remove all files, those of other questions too."""
        if self._folder is not None:
            for path in self._folder.glob(f"{_PREFIX}*"):
                path.unlink(missing_ok=True)

    def _path(self, data: TaskData, layer: int | None) -> Path | None:
        if self._folder is None:
            return None
        place = "own" if layer is None else f"{layer:03d}"
        return self._folder / f"{_PREFIX}{data.task.name}-{place}.npz"
