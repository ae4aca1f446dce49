"""The answers a run has found so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ensue.benchmarks.probing.finished import FinishedFolder
from ensue.benchmarks.senteval.answering import Given
from ensue.benchmarks.senteval.rows import TaskData

_KEY, _DEV, _SPLIT = "key", "dev_accuracy", "split-"


class Finished(FinishedFolder):
    """One file of arrays per task and layer."""

    def __init__(self, folder: Path | None, question: dict[str, Any]) -> None:
        super().__init__(folder, question, ".npz")

    def load(self, data: TaskData, layer: int | None) -> Given | None:
        """The answers; None where there are none, they answer another question, or the file is not whole."""
        path = self.path(data.task.name, layer)
        if path is None or not path.is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as held:
                if str(held[_KEY]) != self.key:
                    return None
                dev = float(held[_DEV])
                by_split = {n.removeprefix(_SPLIT): held[n] for n in held.files if n.startswith(_SPLIT)}
        except (OSError, ValueError, KeyError, EOFError):
            return None
        return Given(by_split, None if np.isnan(dev) else dev)

    def save(self, data: TaskData, layer: int | None, given: Given) -> None:
        """Keep answers."""
        path = self.path(data.task.name, layer)
        if path is None:
            return
        dev = np.nan if given.dev_accuracy is None else given.dev_accuracy
        arrays: dict[str, Any] = {_KEY: np.str_(self.key), _DEV: np.float64(dev)}
        arrays |= {f"{_SPLIT}{split}": values for split, values in given.by_split.items()}

        def write(temporary: Path) -> None:
            with temporary.open("wb") as file:
                np.savez(file, **arrays)

        self.write(path, write)
