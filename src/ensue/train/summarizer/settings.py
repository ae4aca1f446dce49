"""Everything that can be set about training a summariser, and the grid of settings that is searched (table A.8)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from ensue.benchmarks.squality.published import training_search
from ensue.errors import EnsueError
from ensue.train.loop import LoopSettings, Precision

# The bounds of what a grid is over, lowest and highest.
_BOUNDS = {
    "learning_rate": (0.0, 1.0),
    "warmup_ratio": (0.0, 1.0),
    "weight_decay": (0.0, 10.0),
    "label_smoothing": (0.0, 0.9),
}
SEARCHED = tuple(_BOUNDS)
_SHORT = {"learning_rate": "lr", "warmup_ratio": "wr", "weight_decay": "wd", "label_smoothing": "ls"}


@dataclass(frozen=True)
class SummarizerSettings:
    """One training: the model, what it reads and writes, and how it is optimised.

    The defaults are what table A.8 found best for BART. `loop.steps` and `loop.warmup` are 0 here: they are counted
    out from the epochs and the warm-up's share once the training set is read.
    """

    model: str
    loop: LoopSettings
    version: str | None = None
    retrieve: str | None = None
    max_input: int = 1024
    max_output: int = 512
    epochs: int = 5
    batch: int = 8
    warmup_ratio: float = 0.1
    label_smoothing: float = 0.1
    checkpointing: bool = False

    def counted(self, steps_an_epoch: int) -> LoopSettings:
        """The loop's settings for epochs of so many steps: linear decay, a look at dev after each epoch."""
        steps = self.epochs * steps_an_epoch
        return replace(
            self.loop,
            steps=steps,
            warmup=round(self.warmup_ratio * steps),
            schedule="linear",
            evaluate_every=steps_an_epoch,
            # Every epoch is trained; the best is kept.
            patience=self.epochs + 1,
        )

    @property
    def point(self) -> dict[str, float]:
        """Where in the grid it stands."""
        return {
            "learning_rate": self.loop.learning_rate,
            "warmup_ratio": self.warmup_ratio,
            "weight_decay": self.loop.weight_decay,
            "label_smoothing": self.label_smoothing,
        }

    @property
    def name(self) -> str:
        """Its place in the grid as the name of a folder.

        >>> SummarizerSettings("m", LoopSettings(0, learning_rate=5e-5)).name
        'lr5e-05-wr0.1-wd0.01-ls0.1'
        """
        return "-".join(f"{_SHORT[name]}{value:g}" for name, value in self.point.items())


def paper_grid() -> dict[str, list[float]]:
    """The grid of table A.8: 108 trainings."""
    found = training_search()
    return {name: found[name] for name in SEARCHED}


def read_values(name: str, text: str) -> list[float]:
    """Numbers divided by commas, each within the bounds of the setting.

    >>> read_values("learning_rate", "1e-5,5e-5")
    [1e-05, 5e-05]
    """
    low, high = _BOUNDS[name]
    option = f"--{name.replace('_', '-')}"
    values = []
    for piece in filter(None, (each.strip() for each in text.split(","))):
        try:
            value = float(piece)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise EnsueError(f"{option} {piece} will not do: it is a number from {low:g} to {high:g}.")
        values.append(value)
    if not values:
        raise EnsueError(f"{option} is empty; name at least one value.")
    return list(dict.fromkeys(values))


def make_grid(
    *, searched: Mapping[str, Sequence[float]], loop: Mapping[str, Any], **others: Any
) -> list[SummarizerSettings]:
    """A training for every combination of the searched values, in order."""
    if loop.get("precision", "auto") not in get_args(Precision):
        raise EnsueError(
            f"--precision {loop['precision']} will not do: it is one of {', '.join(get_args(Precision))}."
        )
    found = []
    for values in itertools.product(*(searched[name] for name in SEARCHED)):
        rate, warmup, decay, smoothing = values
        settings = LoopSettings(steps=0, learning_rate=rate, weight_decay=decay, warmup=0, **loop)
        found.append(
            SummarizerSettings(loop=settings, warmup_ratio=warmup, label_smoothing=smoothing, **others)
        )
    return found
