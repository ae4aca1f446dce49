"""`ensue train`: models this package trains itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, cast

import typer

from ensue.cli import common

app = typer.Typer(no_args_is_help=True, help="Train models: suffixlm, encoder.", rich_markup_mode=None)


@app.callback()
def group() -> None:
    """Train models: suffixlm, encoder."""


@app.command()
def suffixlm(
    data: Annotated[
        str, typer.Option(help="Works to train on: Gutenberg texts, TEI or JSON novels, AO3 dumps.")
    ],
    dev: Annotated[str, typer.Option(help="Works whose loss decides when to stop.")],
    output: Annotated[Path, typer.Option(help="Folder for the model, its log and its checkpoints.")],
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
    learning_rate: Annotated[float, typer.Option(min=0)] = 1e-4,
    warmup: Annotated[int, typer.Option(min=0, help="Steps over which the learning rate rises.")] = 4000,
    schedule: Annotated[
        str, typer.Option(help="After that: inverse-sqrt, linear or constant.")
    ] = "inverse-sqrt",
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.01,
    accumulate: Annotated[int, typer.Option(min=1, help="Batches a step.")] = 1,
    evaluate_every: Annotated[int, typer.Option(min=1, help="Steps between evaluations.")] = 500,
    patience: Annotated[
        int, typer.Option(min=1, help="Evaluations without a better dev loss before the end.")
    ] = 5,
    precision: Annotated[str, typer.Option(help="auto (bf16 on a GPU), no, bf16 or fp16.")] = "auto",
    device: common.Device = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that read works (default: all cores).")
    ] = None,
    corpora: Annotated[
        Path | None, typer.Option(help="Where tokenised works are kept between trainings.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    json: common.Json = False,
) -> None:
    """Train a SuffixLM: it learns which segment comes next in a book."""
    from dataclasses import asdict

    from ensue.models.hf import need_torch

    need_torch("Training")
    from ensue.text.ids import read_ids
    from ensue.text.works import Headings
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
    kept = "the last checkpoint is kept: run the same command with --resume to go on"
    with common.stoppable(kept), common.progress_bar(f"SuffixLM-{settings.variant}") as progress:
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
    if os.environ.get("RANK", "0") != "0":  # one of several processes speaks
        return
    if json:
        common.print_json({**asdict(fitted), "folder": str(output)})
        return
    early = " (stopped early)" if fitted.stopped_early else ""
    figures = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in fitted.best.items())
    print(f"SuffixLM-{settings.variant}: {fitted.steps} steps{early} in {fitted.seconds:.0f} s.")
    print(f"best at step {fitted.best_step}: {figures}")
    print(f"model folder: {output}")


@app.command()
def encoder(
    data: Annotated[
        list[str],
        typer.Option(help="WikiText, MediaWiki dump, Markdown, HTML, novels; file or folder. Repeatable."),
    ],
    output: Annotated[Path, typer.Option(help="Folder for the model, its log and its checkpoints.")],
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
    accumulate: Annotated[int, typer.Option(min=1, help="Batches a step.")] = 1,
    steps: Annotated[int | None, typer.Option(min=1, help="At most so many steps.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many epochs (default 10).")] = None,
    learning_rate: Annotated[float, typer.Option(min=0)] = 1e-3,
    warmup: Annotated[int, typer.Option(min=0, help="Steps over which the learning rate rises.")] = 0,
    schedule: Annotated[str, typer.Option(help="After that: inverse-sqrt, linear or constant.")] = "constant",
    weight_decay: Annotated[float, typer.Option(min=0)] = 0.0,
    evaluate_every: Annotated[int, typer.Option(min=1, help="Steps between evaluations.")] = 500,
    patience: Annotated[
        int, typer.Option(min=1, help="Evaluations without a better dev loss before the end.")
    ] = 5,
    precision: Annotated[str, typer.Option(help="auto (bf16 on a GPU), no, bf16 or fp16.")] = "auto",
    device: common.Device = "auto",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that read (default: all cores).")
    ] = None,
    corpora: Annotated[
        Path | None, typer.Option(help="Where the prepared corpus is kept between trainings.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    json: common.Json = False,
) -> None:
    """Train a sentence encoder to tell a sentence's neighbours and its place in the document."""
    from dataclasses import asdict

    from ensue.models.hf import need_torch

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
    kept = "the last checkpoint is kept: run the same command with --resume to go on"
    with common.stoppable(kept), common.progress_bar(name) as progress:
        fitted = train_encoder(
            settings,
            data=data,
            output=output,
            workers=workers or cores(),
            resume=resume,
            corpora=corpora,
            told=progress,
        )
    if json:
        common.print_json({**asdict(fitted), "folder": str(output)})
        return
    early = " (stopped early)" if fitted.stopped_early else ""
    figures = ", ".join(f"{figure.replace('_', ' ')} {value:.4f}" for figure, value in fitted.best.items())
    print(f"{name}: {fitted.steps} steps{early} in {fitted.seconds:.0f} s.")
    print(corpus_in_words(output))
    print(f"best at step {fitted.best_step}: {figures}")
    print(f"model folder: {output}")
