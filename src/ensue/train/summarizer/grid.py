"""Trains a summariser once for every point of a grid and keeps the one with the lowest loss on dev."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from ensue.errors import EnsueError, RunFailed
from ensue.train.checkpoint import TENSORS
from ensue.train.loop import Fitted, Told
from ensue.train.record import RECORD, begin_record, check_folder, write_record
from ensue.train.summarizer.settings import SummarizerSettings
from ensue.train.summarizer.train import Stories, read_splits, train_one

# Where the trainings of a grid have their folders.
GRID = "grid"


class Tried(NamedTuple):
    """A point of the grid and how its training ended."""

    settings: SummarizerSettings
    fitted: Fitted


def train_summarizer(
    grid: Sequence[SummarizerSettings],
    *,
    data: Path,
    output: Path,
    resume: bool = False,
    told: Told | None = None,
) -> Fitted:
    """Train at every point; of several, each in its own folder, only the best one's weights are kept, in `output`."""
    if not grid:
        raise EnsueError("There is nothing to train: the grid is empty.")
    stories = read_splits(data, grid[0].version)
    if len(grid) == 1:
        return train_one(grid[0], stories, output=output, resume=resume, told=told)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise EnsueError(
            "A grid is searched by one process; train its points one at a time on several devices."
        )
    asked = {"grid": [asdict(settings) for settings in grid], "data": stories.version}
    check_folder(output, asked, resume)
    begin_record(output, asked)
    best: Tried | None = None
    lines: list[dict[str, Any]] = []
    for place, settings in enumerate(grid):
        tried = Tried(settings, _trained(settings, stories, output, resume, told, place, len(grid)))
        lines.append({"name": settings.name, **settings.point, "dev_loss": tried.fitted.best_loss})
        loser = None if best is None else max(best, tried, key=lambda one: one.fitted.best_loss)
        best = tried if loser is not tried else best
        _drop(output / GRID / settings.name, (TENSORS,))
        if loser is not None:
            _drop_weights(output / GRID / loser.settings.name)
    assert best is not None, "a grid has at least one point"
    _keep(output / GRID / best.settings.name, output)
    record = _record(output / GRID / best.settings.name)
    write_record(output, {**record, "asked": asked, "best": best.settings.name, "grid": lines})
    return best.fitted


def _trained(
    settings: SummarizerSettings,
    stories: Stories,
    output: Path,
    resume: bool,
    told: Told | None,
    place: int,
    of: int,
) -> Fitted:
    """How a point's training ended: as its folder says, where it is finished."""
    folder = output / GRID / settings.name
    fitted = _record(folder).get("fitted")
    if fitted is not None:
        return Fitted(**fitted)

    def tell(done: int, total: int, unit: str) -> None:
        if told is not None:
            told(place * total + done, of * total, unit)

    # A first start that was stopped before this point leaves no folder; going on then begins it.
    going_on = resume and (folder / RECORD).exists()
    return train_one(settings, stories, output=folder, resume=going_on, told=tell)


def _record(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _drop(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _drop_weights(folder: Path) -> None:
    """A large model's weights by the hundred would fill a disk; what was found with them is in the record."""
    for path in folder.glob("*.safetensors"):
        path.unlink(missing_ok=True)


def _keep(folder: Path, output: Path) -> None:
    """Bring the best model and its log up into the output."""
    if not any(folder.glob("*.safetensors")) and not any(output.glob("*.safetensors")):
        raise RunFailed(f"{folder} has lost its weights, so the best training is not there; train it again.")
    for path in sorted(folder.iterdir()):
        if path.name == RECORD or path.is_dir() or path.name.startswith("."):
            continue
        if path.suffix == ".safetensors":
            path.replace(output / path.name)
        else:
            shutil.copy2(path, output / path.name)
