"""What a report says of a training: the curve of its losses, its best step, what was asked and where it ran."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.jsonl import read_object
from ensue.report.page import write_page
from ensue.report.provenance import environment_rows
from ensue.report.svg import drawn_twice
from ensue.text.io.rows import json_objects

RECORD, LOG = "training.json", "training.jsonl"
# A picture has about so many columns of dots; more points only make the file larger.
MOST_POINTS = 500
MOST_EVALUATIONS = 60


class Curve(NamedTuple):
    """Values by step."""

    steps: list[float]
    values: list[float]


class Evaluation(NamedTuple):
    """What was found on held-out data at one step, by name without `dev_`."""

    step: int
    found: dict[str, float]
    best: bool


class Training(NamedTuple):
    """A training as its log tells it; `best` is the evaluation whose model was kept."""

    loss: Curve
    evaluations: list[Evaluation]
    best: Evaluation | None
    steps: int
    seconds: float | None
    not_finite: int

    def dev(self, name: str) -> Curve:
        """Return a held-out figure by step."""
        chosen = [each for each in self.evaluations if name in each.found]
        return Curve([each.step for each in chosen], [each.found[name] for each in chosen])


def is_training(folder: Path) -> bool:
    """Return whether a folder holds a training rather than a run."""
    return not (folder / "run.json").exists() and any((folder / name).exists() for name in (RECORD, LOG))


def write_training_report(folder: Path, path: Path) -> Path:
    """Write the page of a training and return where it is."""
    return write_page("ensue.train.report", "training.html.j2", training_facts(folder), path)


def training_facts(folder: Path) -> dict[str, Any]:
    """Return all that the page of a training needs."""
    if not (folder / RECORD).exists():
        raise EnsueError(f"{folder} has no {RECORD}, so what was trained is not known.")
    record, training = read_object(folder / RECORD), read_log(folder / LOG)
    # Drawing needs matplotlib, which takes half a second to import; a broken log need not wait for it.
    from ensue.train.report.plots import training_plot

    columns = list(dict.fromkeys(name for each in training.evaluations for name in each.found))
    shown = _thinned(training.evaluations, MOST_EVALUATIONS)
    if training.best is not None and training.best not in shown:
        shown = sorted([*shown, training.best], key=lambda each: each.step)
    model = record.get("model")
    return {
        "name": str(model if isinstance(model, str) and model else folder.resolve().name),
        "training": training,
        "seconds": record["seconds"] if _is_number(record.get("seconds")) else training.seconds,
        "picture_of_training": drawn_twice(lambda width: training_plot(training, width=width)),
        "columns": columns,
        "evaluations": shown,
        "evaluations_left_out": len(training.evaluations) - len(shown),
        "last_loss": training.loss.values[-1] if training.loss.values else None,
        "command": _command(record),
        "environment": [
            ("training" if heading == "run" else heading, rows) for heading, rows in environment_rows(record)
        ],
    }


def read_log(path: Path) -> Training:
    """Read `training.jsonl`; a step logged twice, as after a resumption, counts as logged last."""
    if not path.exists():
        raise EnsueError(f"{path.parent} has no {LOG}, so there is no training to report.")
    losses: dict[int, float] = {}
    evaluations: dict[int, Evaluation] = {}
    last, seconds, not_finite = 0, None, 0
    for place, row in json_objects(path):
        step = _step(row, place)
        last = max(last, step)
        if _is_number(row.get("seconds")):
            seconds = max(seconds or 0.0, float(row["seconds"]))
        numbers = {name: float(value) for name, value in _figures(row, place).items() if value is not None}
        not_finite += sum(not math.isfinite(value) for value in numbers.values())
        finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
        if "loss" in finite:
            losses[step] = finite.pop("loss")
        if finite:
            found = {name.removeprefix("dev_"): value for name, value in finite.items()}
            evaluations[step] = Evaluation(step, found, row.get("best") is True)
    if not losses and not evaluations:
        raise EnsueError(f"{path} has neither a loss nor an evaluation, so there is nothing to draw.")
    ordered = [evaluations[step] for step in sorted(evaluations)]
    steps = sorted(losses)
    curve = Curve([float(step) for step in steps], [losses[step] for step in steps])
    # Each that is marked is better than all before it.
    best = next((each for each in reversed(ordered) if each.best), None)
    return Training(curve, ordered, best, last, seconds, not_finite)


def smoothed(curve: Curve) -> Curve:
    """Return the running mean over a fiftieth of the curve on either side, thinned to what a picture can show.

    >>> smoothed(Curve([1.0, 2.0], [3.0, 1.0]))
    Curve(steps=[1.0, 2.0], values=[3.0, 1.0])
    """
    reach = len(curve.values) // 50
    sums = [0.0]
    for value in curve.values:
        sums.append(sums[-1] + value)
    means = []
    for place in range(len(curve.values)):
        start, stop = max(0, place - reach), min(len(curve.values), place + reach + 1)
        means.append((sums[stop] - sums[start]) / (stop - start))
    return thinned(Curve(curve.steps, means))


def thinned(curve: Curve) -> Curve:
    """At most about `MOST_POINTS` of a curve's points, evenly chosen, the last one among them."""
    places = _thinned(range(len(curve.steps)), MOST_POINTS)
    return Curve([curve.steps[place] for place in places], [curve.values[place] for place in places])


def _thinned(values: Sequence[Any], most: int) -> list[Any]:
    step = math.ceil(len(values) / most) or 1
    # From the end, because the end is what a reader looks at.
    return list(values[::-1][::step][::-1])


def _figures(row: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the loss and the held-out figures of a line."""
    found = {name: value for name, value in row.items() if name == "loss" or str(name).startswith("dev_")}
    for name, value in found.items():
        if value is not None and not _is_number(value):
            raise EnsueError(f"{place}: {name!r} must be a number, not {value!r}.")
    return found


def _step(row: Mapping[str, Any], place: str) -> int:
    step = row.get("step")
    if not isinstance(step, int) or isinstance(step, bool) or step < 0:
        raise EnsueError(f"{place}: a line of the training log needs a whole number called 'step'.")
    return step


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _command(record: Mapping[str, Any]) -> str:
    command = record.get("command")
    if isinstance(command, list):
        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else ""
