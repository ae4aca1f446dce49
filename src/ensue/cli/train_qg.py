"""`ensue train qg`: a question generator for QAGS."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue import console
from ensue.cli import training


def qg(
    data: Annotated[
        list[str],
        typer.Option(help="Questions in SQuAD's format; unanswerable ones are left out. Repeatable."),
    ],
    output: training.Output,
    model: console.ModelName = "smollm2",
    base_name: Annotated[
        str, typer.Option(help="What the adapter will find its model by (default: as --model).")
    ] = "",
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapter.")] = 6,
    alpha: Annotated[float, typer.Option(min=0, help="Its strength; alpha / rank scales it.")] = 12.0,
    targets: Annotated[
        str, typer.Option(help="Names of the layers it stands on, by commas.")
    ] = "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj",
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout in the adapter.")] = 0.05,
    dev_share: Annotated[
        float, typer.Option(help="Share of the articles whose loss decides when to stop.")
    ] = 0.1,
    test_share: Annotated[
        float, typer.Option(min=0, help="Share of the articles that the model card measures on.")
    ] = 0.1,
    batch_tokens: Annotated[int, typer.Option(min=32, help="Tokens a batch and process.")] = 8192,
    max_tokens: Annotated[
        int, typer.Option(min=16, help="Longest text with answer and question; longer ones are left out.")
    ] = 512,
    accumulate: training.Accumulate = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="At most so many steps.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many epochs (default 4).")] = None,
    learning_rate: training.LearningRate = 1e-3,
    warmup: training.Warmup = 50,
    schedule: training.Schedule = "linear",
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.0,
    evaluate_every: training.EvaluateEvery = 100,
    patience: training.Patience = 5,
    precision: training.Precision = "auto",
    device: console.Device = "auto",
    statement: Annotated[
        str, typer.Option("--data-statement", help="What the data is and its licence, for the model card.")
    ] = "",
    seed: training.Seed = 0,
    resume: training.Resume = False,
    json: console.Json = False,
) -> None:
    """Train a question generator: it asks what a marked part of a text answers."""
    from ensue.backends.hf.loading import need_torch

    need_torch("Training")
    from ensue.train.qg.settings import make_settings
    from ensue.train.qg.train import STATEMENT, train_questioner

    settings = make_settings(
        model=model,
        base_name=base_name,
        steps=steps,
        epochs=epochs,
        adapter={
            "rank": rank,
            "alpha": alpha,
            "targets": tuple(filter(None, (name.strip() for name in targets.split(",")))),
        },
        loop={
            "learning_rate": learning_rate,
            "warmup": warmup,
            "schedule": schedule,
            "weight_decay": weight_decay,
            "accumulate": accumulate,
            "evaluate_every": evaluate_every,
            "patience": patience,
            "precision": precision,
            "device": device,
            "seed": seed,
        },
        dropout=dropout,
        dev_share=dev_share,
        test_share=test_share,
        batch_tokens=batch_tokens,
        max_tokens=max_tokens,
    )
    with console.stoppable(training.KEPT), console.progress_bar("question generator") as progress:
        fitted = train_questioner(
            settings,
            data=data,
            output=output,
            resume=resume,
            statement=statement or STATEMENT,
            told=progress,
        )
    training.tell("question generator", fitted, output, json)
