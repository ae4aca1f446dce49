"""`ensue train summarizer`: a model fine-tuned to summarise stories in answer to questions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console
from ensue.cli import training

_SEVERAL = "several by commas are all tried"


def summarizer(
    data: Annotated[Path, typer.Option(help="SQuALITY's folder.")],
    output: training.Output,
    model: Annotated[
        str, typer.Option("--model", "-m", help="The seq2seq or causal model to start from: folder or name.")
    ],
    version: Annotated[str | None, typer.Option(help="v1, v1-3 … (default: v1, or else the newest).")] = None,
    retrieve: Annotated[
        str | None, typer.Option(help="Encoder that retrieves the sentences to be read (default: truncate).")
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Try all 108 settings of the paper's table A.8; the best is kept.")
    ] = False,
    learning_rate: Annotated[str, typer.Option(help=f"Highest learning rate; {_SEVERAL}.")] = "5e-5",
    warmup_ratio: Annotated[
        str, typer.Option(help=f"Share of steps over which it rises; {_SEVERAL}.")
    ] = "0.1",
    weight_decay: Annotated[str, typer.Option(help=f"AdamW's; {_SEVERAL}.")] = "0.01",
    label_smoothing: Annotated[str, typer.Option(help=f"Chance spread over all tokens; {_SEVERAL}.")] = "0.1",
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training set; the best is kept.")] = 5,
    batch: Annotated[int, typer.Option(min=1, help="Instances a batch and process.")] = 8,
    accumulate: training.Accumulate = 1,
    max_input: Annotated[int, typer.Option(min=8, help="Most tokens read.")] = 1024,
    max_output: Annotated[int, typer.Option(min=1, help="Most tokens of a summary.")] = 512,
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing", help="Less memory, a third more time.")
    ] = False,
    precision: training.Precision = "auto",
    device: console.Device = "auto",
    seed: training.Seed = 0,
    resume: training.Resume = False,
    json: console.Json = False,
) -> None:
    """Fine-tune a model to summarise stories; the loss on dev decides."""
    from ensue.backends.hf.loading import need_torch

    need_torch("Training")
    from ensue.train.summarizer.grid import train_summarizer
    from ensue.train.summarizer.settings import make_grid, paper_grid, read_values

    given = {
        "learning_rate": learning_rate,
        "warmup_ratio": warmup_ratio,
        "weight_decay": weight_decay,
        "label_smoothing": label_smoothing,
    }
    points = make_grid(
        searched=paper_grid() if grid else {name: read_values(name, text) for name, text in given.items()},
        loop={"accumulate": accumulate, "precision": precision, "device": device, "seed": seed},
        model=model,
        version=version,
        retrieve=retrieve,
        max_input=max_input,
        max_output=max_output,
        epochs=epochs,
        batch=batch,
        checkpointing=checkpointing,
    )
    with console.stoppable(training.KEPT), console.progress_bar("summarizer") as progress:
        fitted = train_summarizer(points, data=data.expanduser(), output=output, resume=resume, told=progress)
    more = f"best of {len(points)} trainings by dev loss" if len(points) > 1 else ""
    training.tell("summarizer", fitted, output, json, more)
