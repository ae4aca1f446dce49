"""`ensue train encoder`: the discourse-aware sentence encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console
from ensue.cli import training


def encoder(
    data: Annotated[
        list[str],
        typer.Option(help="WikiText, MediaWiki dump, Markdown, HTML, novels; file or folder. Repeatable."),
    ],
    output: training.Output,
    losses: Annotated[
        str, typer.Option(help="Of nsp, nl, spp, sdt; a weight as in nl=0.5 (default 1).")
    ] = "nsp",
    dev_share: Annotated[
        float, typer.Option(help="Share of the documents whose loss decides when to stop.")
    ] = 0.05,
    vocabulary: Annotated[int, typer.Option(min=2, help="Words known, the most frequent ones.")] = 50_000,
    embedding: Annotated[int, typer.Option(min=1, help="Width of word vectors.")] = 300,
    dimension: Annotated[
        int, typer.Option(min=1, help="GRU units in each direction; vectors are twice as wide.")
    ] = 300,
    hidden: Annotated[int, typer.Option(min=1, help="Width of the decoders' hidden layers.")] = 300,
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout in the decoders.")] = 0.0,
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors to start from, in GloVe's text format.")
    ] = None,
    max_words: Annotated[int, typer.Option(min=1, help="Words at which sentences are cut.")] = 200,
    positions: Annotated[str, typer.Option(help="SPP's classes: share of the whole, or exact.")] = "share",
    position_classes: Annotated[int, typer.Option(min=2)] = 20,
    batch: Annotated[int, typer.Option(min=1, help="Sentences a batch and process.")] = 256,
    accumulate: training.Accumulate = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="At most so many steps.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many epochs (default 10).")] = None,
    learning_rate: training.LearningRate = 1e-3,
    warmup: training.Warmup = 0,
    schedule: training.Schedule = "constant",
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.0,
    evaluate_every: training.EvaluateEvery = 500,
    patience: training.Patience = 5,
    precision: training.Precision = "auto",
    device: console.Device = "auto",
    workers: training.Workers = None,
    corpora: training.Corpora = None,
    seed: training.Seed = 0,
    resume: training.Resume = False,
    json: console.Json = False,
) -> None:
    """Train a sentence encoder to tell a sentence's neighbours and its place in the document."""
    from ensue.backends.hf.loading import need_torch

    need_torch("Training")
    from ensue.parallel import cores
    from ensue.train.encoder.record import corpus_in_words
    from ensue.train.encoder.settings import make_settings
    from ensue.train.encoder.train import train_encoder

    settings = make_settings(
        losses=losses,
        steps=steps,
        epochs=epochs,
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
        vocabulary=vocabulary,
        embedding=embedding,
        dimension=dimension,
        hidden=hidden,
        dropout=dropout,
        batch=batch,
        max_words=max_words,
        positions=positions,
        position_classes=position_classes,
        dev_share=dev_share,
        vectors=str(vectors) if vectors else "",
    )
    name = "encoder " + "+".join(settings.losses)
    with console.stoppable(training.KEPT), console.progress_bar(name) as progress:
        fitted = train_encoder(
            settings,
            data=data,
            output=output,
            workers=workers or cores(),
            resume=resume,
            corpora=corpora,
            told=progress,
        )
    training.tell(name, fitted, output, json, corpus_in_words(output))
