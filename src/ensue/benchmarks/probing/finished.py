"""What a run has finished so far, one small file a task and layer, so that a killed run need not train again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ensue.errors import EnsueError

_PREFIX = ".finished-"


class FinishedFolder:
    """The files in a run's folder (none without one), each good only for the question with this `key`."""

    def __init__(self, folder: Path | None, question: dict[str, Any], ending: str) -> None:
        self._folder, self._ending = folder, ending
        self.key = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()

    def path(self, task: str, layer: int | None) -> Path | None:
        """Where a task's outcome is kept."""
        if self._folder is None:
            return None
        place = "own" if layer is None else f"{layer:03d}"
        return self._folder / f"{_PREFIX}{task.replace('/', '-')}-{place}{self._ending}"

    def write(self, path: Path, write: Callable[[Path], object]) -> None:
        """Have a file written whole or not at all."""
        temporary = path.with_name(f"{path.name}.part")
        try:
            write(temporary)
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
