"""Options of a summariser, and the grid of settings that is searched (table A.8 of the SQuALITY paper)."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from ensue.errors import EnsueError
from ensue.train import options

# What a grid is over: the lowest and the highest value, and a short name for folders.
_SEARCHED = {
    "learning_rate": (0.0, 1.0, "lr"),
    "warmup_ratio": (0.0, 1.0, "wr"),
    "weight_decay": (0.0, 10.0, "wd"),
    "label_smoothing": (0.0, 0.9, "ls"),
}
_SEVERAL = "several by commas are all tried"


@dataclass(frozen=True, kw_only=True)
class SummarizerOptions(options.TrainingOptions):
    """Fine-tune a model to summarise stories; the loss on dev decides."""

    # The defaults are what table A.8 found best for BART.
    trains: ClassVar[str] = "ensue.train.summarizer.train:train_summarizer"
    apart: ClassVar[tuple[str, ...]] = ("grid",)
    order: ClassVar[str] = (
        "model loop version retrieve max_input max_output epochs batch warmup_ratio label_smoothing checkpointing"
    )

    data: Annotated[Path, typer.Option(help="SQuALITY's folder.")]
    model: Annotated[
        str, typer.Option("--model", "-m", help="The seq2seq or causal model to start from: folder or name.")
    ]
    version: Annotated[str | None, typer.Option(help="v1, v1-3 … (default: v1, or else the newest).")] = None
    retrieve: Annotated[
        str | None, typer.Option(help="Encoder that retrieves the sentences to be read (default: truncate).")
    ] = None
    grid: Annotated[
        bool, typer.Option("--grid", help="Try all 108 settings of the paper's table A.8; the best is kept.")
    ] = False
    learning_rate: Annotated[str, typer.Option(help=f"Highest learning rate; {_SEVERAL}.")] = "5e-5"
    warmup_ratio: Annotated[
        str, typer.Option(help=f"Share of the steps over which it warms up; {_SEVERAL}.")
    ] = "0.1"
    weight_decay: Annotated[str, typer.Option(help=f"AdamW's; {_SEVERAL}.")] = "0.01"
    label_smoothing: Annotated[str, typer.Option(help=f"Label smoothing; {_SEVERAL}.")] = "0.1"
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training set; the best is kept.")] = 5
    batch: Annotated[int, typer.Option(min=1, help="Instances a batch and process.")] = 8
    max_input: Annotated[int, typer.Option(min=8, help="Most tokens read.")] = 1024
    max_output: Annotated[int, typer.Option(min=1, help="Most tokens of a summary.")] = 512
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="Less memory, a third more time.")
    ] = False

    @property
    def title(self) -> str:
        return "summarizer"

    def points(self) -> list[SummarizerOptions]:
        """Return the options of a training for every combination of the searched values, in order."""
        from ensue.benchmarks.published import facts_of

        paper = facts_of("ensue.benchmarks.squality")["training_search"] if self.grid else {}
        values = [paper.get(name) or read_values(name, getattr(self, name)) for name in _SEARCHED]
        chosen: list[dict[str, Any]] = [
            dict(zip(_SEARCHED, map(repr, one), strict=True)) for one in itertools.product(*values)
        ]
        return [replace(self, grid=False, **one) for one in chosen]

    @property
    def point(self) -> dict[str, float]:
        """Where in the grid a single training stands."""
        return {name: float(getattr(self, name)) for name in _SEARCHED}

    @property
    def name(self) -> str:
        """Its place in the grid as the name of a folder, such as lr5e-05-wr0.1-wd0.01-ls0.1."""
        return "-".join(f"{_SEARCHED[name][2]}{value:g}" for name, value in self.point.items())

    @property
    def loop(self) -> options.LoopSettings:
        rate, decay = self.point["learning_rate"], self.point["weight_decay"]
        return replace(super().loop, warmup=0, learning_rate=rate, weight_decay=decay)

    def counted(self, batches: int, processes: int) -> options.LoopSettings:
        """Return the loop's settings: linear decay, a look at dev after each epoch."""
        loop = self.loop.counted(batches, processes, self.epochs)
        return replace(
            loop,
            warmup=round(self.point["warmup_ratio"] * loop.steps),
            schedule="linear",
            evaluate_every=loop.steps // self.epochs,
            # Every epoch is trained; the best is kept.
            patience=self.epochs + 1,
        )

    def resolved(self) -> dict[str, Any]:
        return {name: self.point[name] for name in ("warmup_ratio", "label_smoothing")}

    def remark(self) -> str:
        count = len(self.points())
        return f"best of {count} trainings by dev loss" if count > 1 else ""


def read_values(name: str, text: str) -> list[float]:
    """Return numbers divided by commas, each within the bounds of the setting.

    >>> read_values("learning_rate", "1e-5,5e-5")
    [1e-05, 5e-05]
    """
    low, high, _ = _SEARCHED[name]
    option = f"--{name.replace('_', '-')}"
    values = []
    for piece in options.names_in(text):
        try:
            value = float(piece)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise EnsueError(f"Invalid {option} {piece}: expected a number from {low:g} to {high:g}.")
        values.append(value)
    if not values:
        raise EnsueError(f"{option} is empty; name at least one value.")
    return list(dict.fromkeys(values))
