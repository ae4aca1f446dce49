"""`ensue train`: models this package trains itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from ensue import console
from ensue.cli import training
from ensue.cli.train_encoder import encoder
from ensue.cli.train_qa import qa
from ensue.cli.train_qg import qg
from ensue.cli.train_summarizer import summarizer

app = typer.Typer(
    no_args_is_help=True, help="Train models: suffixlm, encoder, qa, qg, summarizer.", rich_markup_mode=None
)


@app.callback()
def group() -> None:
    """Train models: suffixlm, encoder, qa, qg, summarizer."""


@app.command()
def suffixlm(
    data: Annotated[
        str, typer.Option(help="Works to train on: Gutenberg texts, TEI or JSON novels, AO3 dumps.")
    ],
    dev: Annotated[str, typer.Option(help="Works whose loss decides when to stop.")],
    output: training.Output,
    variant: Annotated[str, typer.Option(help="A, B, C, D or E (appendix D of the paper).")] = "E",
    encoder: Annotated[str, typer.Option(help="A BERT- or RoBERTa-style checkpoint.")] = "minilm",
    pooling: Annotated[
        str, typer.Option(help="cls, mean, or auto (as the encoder states, else cls).")
    ] = "auto",
    similarity: Annotated[str, typer.Option(help="dot (the paper) or cosine with a learned scale.")] = "dot",
    exclude: Annotated[
        Path | None, typer.Option(help="File of training works to leave out, one id a line.")
    ] = None,
    dev_only: Annotated[
        Path | None, typer.Option(help="File of the dev works to use, one id a line.")
    ] = None,
    headings: Annotated[
        str, typer.Option(help="How chapters are found in plain text: robust or paper.")
    ] = "robust",
    dimension: Annotated[int, typer.Option(min=8, help="Width of the Transformer over segments.")] = 768,
    inner: Annotated[int, typer.Option(min=8, help="Width of its feed-forward layers.")] = 2048,
    heads: Annotated[int, typer.Option(min=1)] = 8,
    layers: Annotated[int, typer.Option(min=1)] = 6,
    dropout: Annotated[float, typer.Option(min=0, max=0.9)] = 0.1,
    segment_dropout: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Segments hidden in training (default: as the variant)."),
    ] = None,
    token_dropout: Annotated[
        float, typer.Option(min=0, max=0.9, help="Tokens hidden from the encoder in training.")
    ] = 0.0,
    segment_tokens: Annotated[
        int, typer.Option(min=8, help="Tokens a segment, special ones included.")
    ] = 128,
    segments: Annotated[int, typer.Option(min=2, help="Segments a window: 80 are 10,240 tokens.")] = 80,
    batch: Annotated[int, typer.Option(min=1, help="Windows a batch and process.")] = 16,
    in_book: Annotated[int, typer.Option(min=1, help="Windows of one work in a batch.")] = 2,
    others: Annotated[
        bool, typer.Option("--others/--no-others", help="Segments of other works are negatives too.")
    ] = True,
    earlier: Annotated[
        bool, typer.Option("--earlier/--no-earlier", help="Earlier segments of the work are negatives too.")
    ] = True,
    spare: Annotated[int, typer.Option(min=0, help="Segments after the next one that are no negatives.")] = 0,
    horizon: Annotated[int, typer.Option(min=1, help="Predict a segment up to so many ahead.")] = 1,
    break_weight: Annotated[
        float, typer.Option(min=0, help="Weight of predictions across a chapter break.")
    ] = 1.0,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Default: 120,000; 60,000 with a frozen encoder.")
    ] = None,
    learning_rate: training.LearningRate = 1e-4,
    warmup: training.Warmup = 4000,
    schedule: training.Schedule = "inverse-sqrt",
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.01,
    accumulate: training.Accumulate = 1,
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
    """Train a SuffixLM: it learns which segment comes next in a book."""
    from ensue.backends.hf.loading import need_torch

    need_torch("Training")
    from ensue.text.io.rows import read_ids
    from ensue.text.works.readers import Headings
    from ensue.train.suffixlm.settings import make_settings
    from ensue.train.suffixlm.train import train_suffixlm

    settings = make_settings(
        variant=variant,
        encoder=encoder,
        pooling=pooling,
        exclude=tuple(read_ids(exclude)) if exclude else (),
        shape={
            "dimension": dimension,
            "inner": inner,
            "heads": heads,
            "layers": layers,
            "dropout": dropout,
            "similarity": similarity,
            "segment_tokens": segment_tokens,
            "max_segments": segments,
        },
        loop={
            "steps": steps,
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
        batch=batch,
        in_book=in_book,
        others=others,
        earlier=earlier,
        spare=spare,
        horizon=horizon,
        segment_dropout=segment_dropout,
        token_dropout=token_dropout,
        break_weight=break_weight,
    )
    with console.stoppable(training.KEPT), console.progress_bar(f"SuffixLM-{settings.variant}") as progress:
        fitted = train_suffixlm(
            settings,
            data=data,
            dev=dev,
            output=output,
            dev_only=read_ids(dev_only) if dev_only else None,
            headings=cast(Headings, headings),
            workers=workers,
            resume=resume,
            corpora=corpora,
            told=progress,
        )
    training.tell(f"SuffixLM-{settings.variant}", fitted, output, json)


app.command()(encoder)
app.command()(qa)
app.command()(qg)
app.command()(summarizer)
