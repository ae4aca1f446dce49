"""The probes a run has finished so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ensue.benchmarks.discoeval.probe import Probe
from ensue.benchmarks.probing.finished import FinishedFolder


class Finished(FinishedFolder):
    """One JSON file per task and layer."""

    def __init__(self, folder: Path | None, question: dict[str, Any]) -> None:
        super().__init__(folder, question, ".json")

    def load(self, task: str, layer: int | None) -> Probe | None:
        """The finished outcome; None where there is none, it answers another question, or it is not whole."""
        path = self.path(task, layer)
        if path is None or not path.is_file():
            return None
        try:
            value = json.loads(path.read_text("utf-8"))
            return Probe.from_json(value["probe"]) if value["key"] == self.key else None
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save(self, task: str, probe: Probe) -> None:
        """Keep an outcome."""
        path = self.path(task, probe.layer)
        if path is not None:
            text = json.dumps({"key": self.key, "probe": probe.as_json()})
            self.write(path, lambda temporary: temporary.write_text(text, "utf-8"))
