"""Train a SuffixLM: works in, a model folder out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from ensue.backends.names import load_model
from ensue.backends.suffixlm.model import SuffixLM, bare_encoder, save_suffixlm, truncate_encoder
from ensue.errors import EnsueError
from ensue.parallel import cores
from ensue.progress import Progress
from ensue.text.works.readers import Headings
from ensue.train.loop import Fitted
from ensue.train.run import CORPUS, Described, Job, parameters_of, run_training
from ensue.train.suffixlm.corpus import SegmentCorpus, prepare_corpus
from ensue.train.suffixlm.objective import (
    ENCODED_AT_ONCE,
    SuffixObjective,
    WindowBatch,
    encoded_segments,
    epoch_batches,
    fixed_batches,
)
from ensue.train.suffixlm.options import TRAINED_LAYERS, SuffixOptions, ids_in

_NEGATIVES = 5
_AT_ONCE = 64


def train_suffixlm(options: SuffixOptions, progress: Progress | None = None) -> Fitted:
    """Train on the works of `data`, stop by the loss on those of `dev`, and leave the best model in the output.

    `corpora` is where tokenised works are kept (default: in the output), so that variants can share them.
    """
    return run_training(options, lambda *machine: _prepare(options, *machine), progress)


def _prepare(options: SuffixOptions, accelerator: Accelerator, progress: Progress) -> Job:
    torch.manual_seed(options.seed)
    encoder, tokenizer, folder = _encoder(options)
    place = options.corpora or options.output / CORPUS
    made = _corpora(options, place, folder, accelerator, progress)
    network = SuffixLM(encoder, options.shape).to(accelerator.device)
    encoded = None
    if options.kind.trained == "none":
        with accelerator.main_process_first():
            encoded = {name: encoded_segments(network, c, place, name) for name, c in made.items()}
    objective = SuffixObjective(network, made, encoded, options)
    size = options.segments
    breaks = find_breaks(made["dev"], size)

    def batches(epoch: int) -> Iterator[tuple[str, WindowBatch]]:
        for batch in epoch_batches(made["train"], size, options.batch, options.in_book, options.seed, epoch):
            yield "train", batch

    def evaluate() -> Mapping[str, float]:
        losses = [float(objective(("dev", b))) for b in fixed_batches(made["dev"], size, options.batch)]
        rows = np.arange(len(made["dev"]))
        pieces = [rows[i : i + ENCODED_AT_ONCE] for i in range(0, len(rows), ENCODED_AT_ONCE)]
        vectors = torch.cat([objective.segment_vectors("dev", piece) for piece in pieces])
        return {"dev_loss": float(np.mean(losses)), "dev_accuracy": break_accuracy(network, vectors, breaks)}

    def describe(facts: Mapping[str, Any], fitted: Fitted) -> Described:
        words = (
            f"{options.title} on {facts['corpora']['train']['works']} works, {fitted.best_step} steps, "
            f"dev loss {fitted.best_loss:.4f}"
        )
        return Described(words, f"trained by ensue from {options.encoder}")

    return Job(
        objective,
        options.loop,
        batches,
        evaluate,
        save=lambda: save_suffixlm(options.output, network, tokenizer),
        describe=describe,
        facts={
            "variant": options.kind.about,
            "corpora": {
                name: {"works": len(c.spans), "segments": len(c), "skipped": c.skipped}
                for name, c in made.items()
            },
            **parameters_of(network),
        },
        question=" ".join(made[name].digest for name in ("train", "dev")),
    )


def _corpora(
    options: SuffixOptions,
    place: Path,
    tokenizer: Path,
    accelerator: Accelerator,
    progress: Progress,
) -> dict[str, SegmentCorpus]:
    """Prepare the corpora to train on and to stop by; no work may be in both."""
    made: dict[str, SegmentCorpus] = {}
    with accelerator.main_process_first():
        for name, source in (("train", options.data), ("dev", options.dev)):
            made[name] = prepare_corpus(
                source,
                place / name,
                tokenizer,
                segment_tokens=options.segment_tokens,
                headings=cast(Headings, options.headings),
                exclude=(ids_in(options.exclude) or ()) if name == "train" else (),
                only=ids_in(options.dev_only) if name == "dev" else None,
                workers=options.workers or cores(),
                progress=progress,
            )
    both = {s.work for s in made["train"].spans} & {s.work for s in made["dev"].spans}
    if both:
        raise EnsueError(
            f"{sorted(both)[0]} is in the training and in the dev works; leave it out of one of them."
        )
    return made


def _encoder(options: SuffixOptions) -> tuple[Any, Any, Path]:
    """Return the encoder as the variant wants it, its tokenizer and the folder of that."""
    variant = options.kind
    loaded: Any = load_model(options.encoder, device="cpu", dtype="float32")
    encoder = getattr(getattr(loaded, "network", None), "base_model", None)
    layers = getattr(getattr(encoder, "encoder", None), "layer", None)
    if encoder is None or layers is None:
        raise EnsueError(
            f"{options.encoder} is not a BERT- or RoBERTa-style encoder, which a SuffixLM is built on."
        )
    limit = loaded.card.max_length or options.segment_tokens
    if options.segment_tokens > limit:
        raise EnsueError(f"{options.encoder} takes {limit} tokens, fewer than --segment-tokens.")
    bare_encoder(encoder)
    if variant.kept_layers is not None:
        truncate_encoder(encoder, variant.kept_layers)
    if variant.trained == "all":
        encoder.requires_grad_(True)
    elif variant.trained == "last":
        for layer in encoder.encoder.layer[-TRAINED_LAYERS:]:
            layer.requires_grad_(True)
    return encoder, loaded.tokenizer, Path(loaded.tokenizer.name_or_path)


class Break(NamedTuple):
    """A chapter break: the rows of its context, the row of the true opening and those of all later ones."""

    begin: int
    end: int
    later: tuple[int, ...]


def find_breaks(corpus: SegmentCorpus, segments: int) -> list[Break]:
    """Return every break of every work that has five later chapters, with at most `segments` segments before it."""
    return [
        Break(max(span.begin, opening - segments), opening, span.openings[place + 1 :])
        for span in corpus.spans
        for place, opening in enumerate(span.openings)
        if place and len(span.openings) - place - 1 >= _NEGATIVES
    ]


def break_accuracy(network: SuffixLM, vectors: Tensor, breaks: list[Break]) -> float:
    """Return the expected accuracy over the breaks if five negatives are drawn from the later openings.

    Where w of m later openings score at least as high as the true one, none of them is among five drawn with
    probability C(m − w, 5) / C(m, 5). `vectors` are those of the corpus's rows.
    """
    total = 0.0
    for begin in range(0, len(breaks), _AT_ONCE):
        some = breaks[begin : begin + _AT_ONCE]
        length = max(b.end - b.begin for b in some)
        table = vectors.new_zeros((len(some), length, vectors.shape[-1]))
        for place, item in enumerate(some):
            table[place, : item.end - item.begin] = vectors[item.begin : item.end]
        last = torch.tensor([b.end - b.begin - 1 for b in some], device=vectors.device)
        predicted = network(table)[torch.arange(len(some), device=vectors.device), last].float()
        for row, item in zip(predicted, some, strict=True):
            scores = vectors[[item.end, *item.later]].float() @ row
            worse = int((scores[1:] >= scores[0]).sum())
            total += comb(len(item.later) - worse, _NEGATIVES) / comb(len(item.later), _NEGATIVES)
    return total / len(breaks) if breaks else float("nan")
