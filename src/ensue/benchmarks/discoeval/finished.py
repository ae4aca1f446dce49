"""What a run has finished so far, kept in its folder so that a killed run need not train again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ensue.benchmarks.discoeval.probe import Probe
from ensue.errors import EnsueError

_PREFIX = ".finished-"


class Finished:
    """One small file per task and layer, good only for the question it was made for."""

    def __init__(self, folder: Path | None, question: dict[str, Any]) -> None:
        self._folder = folder
        self._key = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()

    def load(self, task: str, layer: int | None) -> Probe | None:
        """The finished outcome; None where there is none, it answers another question, or it is not whole."""
        path = self._path(task, layer)
        if path is None or not path.is_file():
            return None
        try:
            value = json.loads(path.read_text("utf-8"))
            return Probe.from_json(value["probe"]) if value["key"] == self._key else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, task: str, probe: Probe) -> None:
        """Write an outcome whole or not at all."""
        path = self._path(task, probe.layer)
        if path is None:
            return
        temporary = path.with_name(f"{path.name}.part")
        try:
            temporary.write_text(json.dumps({"key": self._key, "probe": probe.as_json()}), "utf-8")
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

    def _path(self, task: str, layer: int | None) -> Path | None:
        if self._folder is None:
            return None
        place = "own" if layer is None else f"{layer:03d}"
        return self._folder / f"{_PREFIX}{task.replace('/', '-')}-{place}.json"
