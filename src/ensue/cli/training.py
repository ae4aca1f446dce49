"""What the commands that train share: options, and what they say at the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue import console

if TYPE_CHECKING:
    from ensue.train.loop import Fitted

Output = Annotated[Path, typer.Option(help="Folder for the model, its log and its checkpoints.")]
EvaluateEvery = Annotated[int, typer.Option(min=1, help="Steps between evaluations.")]
Patience = Annotated[int, typer.Option(min=1, help="Evaluations without a better dev loss before the end.")]
Precision = Annotated[str, typer.Option(help="auto (bf16 on a GPU), no, bf16 or fp16.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")]
LearningRate = Annotated[float, typer.Option(min=0)]
Warmup = Annotated[int, typer.Option(min=0, help="Steps over which the learning rate rises.")]
Schedule = Annotated[str, typer.Option(help="After that: inverse-sqrt, linear or constant.")]
Accumulate = Annotated[int, typer.Option(min=1, help="Batches a step.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that read (default: all cores).")]
Corpora = Annotated[Path | None, typer.Option(help="Where prepared texts are kept between trainings.")]

KEPT = "the last checkpoint is kept: run the same command with --resume to go on"


def tell(name: str, fitted: Fitted, output: Path, json: bool, more: str = "") -> None:
    """How a training ended; of several processes one speaks."""
    from dataclasses import asdict

    if os.environ.get("RANK", "0") != "0":
        return
    if json:
        console.print_json({**asdict(fitted), "folder": str(output)})
        return
    early = " (stopped early)" if fitted.stopped_early else ""
    figures = ", ".join(f"{figure.replace('_', ' ')} {value:.4f}" for figure, value in fitted.best.items())
    print(f"{name}: {fitted.steps} steps{early} in {fitted.seconds:.0f} s.")
    if more:
        print(more)
    print(f"best at step {fitted.best_step}: {figures}")
    print(f"model folder: {output}")
