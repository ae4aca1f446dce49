"""What a run has fine-tuned so far, one file a task and seed, so that a killed run goes on with the next."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.examples import Prediction
from ensue.benchmarks.probing.finished import FinishedFolder

# By task (the one that was trained, and those its classifier answers), split and example.
ByTask = Mapping[str, Mapping[str, Mapping[str, Prediction]]]
ChancesByTask = Mapping[str, Mapping[str, Mapping[str, list[float]]]]


@dataclass(frozen=True)
class Outcome:
    """One training's answers, its score on dev (none without a dev set) and how it went."""

    seed: int
    dev_score: float | None
    record: Mapping[str, Any]
    predictions: ByTask
    chances: ChancesByTask


class Finished(FinishedFolder):
    """The outcomes of one task, by seed."""

    def __init__(self, folder: Path | None, question: dict[str, Any], task: str) -> None:
        super().__init__(folder, question, ".json")
        self._task = task

    def load(self, seed: int) -> Outcome | None:
        """The outcome; None where there is none, it answers another question, or the file is not whole."""
        path = self.path(self._task, seed)
        if path is None or not path.is_file():
            return None
        try:
            held = json.loads(path.read_text("utf-8"))
            return Outcome(**held["outcome"]) if held["key"] == self.key else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def save(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        path = self.path(self._task, outcome.seed)
        if path is not None:
            text = json.dumps({"key": self.key, "outcome": asdict(outcome)}, ensure_ascii=False)
            self.write(path, lambda temporary: temporary.write_text(text, "utf-8"))


def best_of(outcomes: list[Outcome]) -> Outcome:
    """The outcome with the highest score on dev; the first of equals, and the first where there is no dev set."""
    return max(outcomes, key=lambda one: -math.inf if one.dev_score is None else one.dev_score)
