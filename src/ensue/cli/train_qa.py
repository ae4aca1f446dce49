"""`ensue train qa`: a model that answers questions from texts."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue import console
from ensue.cli import training


def qa(
    data: Annotated[
        list[str], typer.Option(help="Questions in SQuAD's format, 1.1 or 2.0; .json or .jsonl. Repeatable.")
    ],
    output: training.Output,
    extra: Annotated[
        list[str] | None,
        typer.Option(help="Further questions that are only trained on, as `ensue build squad` makes them."),
    ] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="The encoder to build on.")] = "minilm",
    full: Annotated[bool, typer.Option("--full", help="Train the whole encoder, not an adapter.")] = False,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapter.")] = 32,
    alpha: Annotated[
        float | None, typer.Option(min=0, help="Its scale times its rank (default: 2 × rank).")
    ] = None,
    targets: Annotated[
        str, typer.Option(help="Layers it stands on: all, or names such as query,value.")
    ] = "all",
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout in the adapter.")] = 0.05,
    max_length: Annotated[int, typer.Option(min=16, help="Tokens a row, question included.")] = 384,
    stride: Annotated[int, typer.Option(min=0, help="Tokens that two windows share.")] = 128,
    max_question: Annotated[int, typer.Option(min=1, help="Tokens at which questions are cut.")] = 64,
    max_answer: Annotated[int, typer.Option(min=1, help="Tokens an answer has at most.")] = 30,
    epochs: Annotated[int, typer.Option(min=1, help="At most so many epochs.")] = 4,
    batch: Annotated[int, typer.Option(min=1, help="Rows a batch and process.")] = 32,
    accumulate: training.Accumulate = 1,
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="Default: 1e-3; 5e-5 with --full.")
    ] = None,
    warmup_share: Annotated[
        float, typer.Option(min=0, max=1, help="Part of the steps over which the rate rises.")
    ] = 0.06,
    schedule: training.Schedule = "linear",
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.01,
    dev_share: Annotated[
        float, typer.Option(help="Share of the articles that decide which step is kept.")
    ] = 0.1,
    test_share: Annotated[float, typer.Option(help="Share of the articles it is measured on.")] = 0.1,
    any_place: Annotated[
        bool,
        typer.Option(
            "--any-place",
            help="An answer counts wherever its words stand, for data whose answer_start is unreliable.",
        ),
    ] = False,
    about_data: Annotated[
        str, typer.Option(help="What the model card says of the data: origin, licence.")
    ] = "",
    evaluate_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between evaluations (default: an epoch).")
    ] = None,
    patience: training.Patience = 5,
    precision: training.Precision = "auto",
    device: console.Device = "auto",
    seed: training.Seed = 0,
    resume: training.Resume = False,
    json: console.Json = False,
) -> None:
    """Train a model to find the part of a text that answers a question, or to say that none does."""
    from ensue.backends.hf.loading import need_torch

    need_torch("Training")
    from ensue.train.qa.settings import make_settings
    from ensue.train.qa.train import train_answerer

    settings = make_settings(
        model=model,
        full=full,
        rank=rank,
        alpha=alpha,
        targets=targets,
        learning_rate=learning_rate,
        evaluate_every=evaluate_every,
        reading={
            "max_length": max_length,
            "stride": stride,
            "max_question": max_question,
            "max_answer": max_answer,
        },
        loop={
            "schedule": schedule,
            "weight_decay": weight_decay,
            "accumulate": accumulate,
            "patience": patience,
            "precision": precision,
            "device": device,
            "seed": seed,
        },
        epochs=epochs,
        batch=batch,
        dropout=dropout,
        warmup_share=warmup_share,
        dev_share=dev_share,
        test_share=test_share,
        any_place=any_place,
    )
    with console.stoppable(training.KEPT), console.progress_bar("answerer") as progress:
        fitted = train_answerer(
            settings,
            data=data,
            extra=extra or (),
            output=output,
            about_data=about_data,
            resume=resume,
            told=progress,
        )
    training.tell("answerer", fitted, output, json)
