"""Training a SuffixLM: works in, a model folder out, with its log and what was asked beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ensue.backends.names import load_model
from ensue.backends.suffixlm.model import SuffixLM, bare_encoder, save_suffixlm, truncate_encoder
from ensue.environment import environment
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.parallel import cores
from ensue.text.works.readers import Headings
from ensue.train.loop import Fitted, Loop, make_accelerator
from ensue.train.record import CORPUS, begin_record, check_folder, write_record
from ensue.train.suffixlm.breaks import break_accuracy, find_breaks
from ensue.train.suffixlm.corpus import Corpus, prepare_corpus
from ensue.train.suffixlm.encoded import ENCODED_AT_ONCE, encoded_segments
from ensue.train.suffixlm.objective import Negatives, Objective
from ensue.train.suffixlm.settings import TRAINED_LAYERS, VARIANTS, SuffixSettings
from ensue.train.suffixlm.windows import Batch, epoch_batches, fixed_batches

Told = Callable[[int, int, str], None]


def train_suffixlm(
    settings: SuffixSettings,
    *,
    data: str,
    dev: str,
    output: Path,
    dev_only: Iterable[str] | None = None,
    headings: Headings = "robust",
    workers: int | None = None,
    resume: bool = False,
    corpora: Path | None = None,
    told: Told | None = None,
) -> Fitted:
    """Train on the works of `data`, stop by the loss on those of `dev`, and leave the best model in `output`.

    `corpora` is where tokenised works are kept (default: in the output), so that variants can share them.
    """
    variant = VARIANTS[settings.variant]
    asked = {"settings": asdict(settings), "data": data, "dev": dev, "dev_only": sorted(dev_only or [])}
    accelerator = make_accelerator(settings.loop)
    if accelerator.is_main_process:
        check_folder(output, asked, resume)
    else:
        told = None
    torch.manual_seed(settings.loop.seed)
    encoder, tokenizer, folder = _encoder(settings)
    place = corpora or output / CORPUS
    made: dict[str, Corpus] = {}
    with accelerator.main_process_first():
        for name, source, only in (("train", data, None), ("dev", dev, dev_only)):
            made[name] = prepare_corpus(
                source,
                place / name,
                folder,
                segment_tokens=settings.shape.segment_tokens,
                headings=headings,
                exclude=settings.exclude if name == "train" else (),
                only=only,
                workers=workers or cores(),
                told=told,
            )
    _disjoint(made)
    network = SuffixLM(encoder, settings.shape).to(accelerator.device)
    frozen = variant.trained == "none"
    encoded = None
    if frozen:
        with accelerator.main_process_first():
            encoded = {name: encoded_segments(network, c, place, name) for name, c in made.items()}
    objective = Objective(
        network,
        made,
        encoded,
        negatives=Negatives(settings.others, settings.earlier, settings.spare),
        horizon=settings.horizon,
        segment_dropout=settings.segment_dropout,
        token_dropout=settings.token_dropout,
        break_weight=settings.break_weight,
    )
    loop = Loop(
        objective,
        settings.loop,
        output,
        accelerator,
        save_best=lambda: save_suffixlm(output, network, tokenizer),
        told=told,
        question=" ".join(made[name].digest for name in ("train", "dev")),
    )
    size = settings.shape.max_segments
    breaks = find_breaks(made["dev"], size)

    def batches(epoch: int) -> Iterator[tuple[str, Batch]]:
        seed = settings.loop.seed
        for batch in epoch_batches(made["train"], size, settings.batch, settings.in_book, seed, epoch):
            yield "train", batch

    def evaluate() -> Mapping[str, float]:
        losses = [float(objective(("dev", b))) for b in fixed_batches(made["dev"], size, settings.batch)]
        rows = np.arange(len(made["dev"]))
        pieces = [rows[i : i + ENCODED_AT_ONCE] for i in range(0, len(rows), ENCODED_AT_ONCE)]
        vectors = torch.cat([objective.segment_vectors("dev", piece) for piece in pieces])
        return {"dev_loss": float(np.mean(losses)), "dev_accuracy": break_accuracy(network, vectors, breaks)}

    if accelerator.is_main_process:
        begin_record(output, asked)
    fitted = loop.run(batches, evaluate, resume=resume)
    if accelerator.is_main_process:
        _record(output, asked, settings, made, fitted, network, accelerator.num_processes)
    return fitted


def _encoder(settings: SuffixSettings) -> tuple[Any, Any, Path]:
    """The encoder as the variant wants it, its tokenizer and the folder of that."""
    variant = VARIANTS[settings.variant]
    loaded: Any = load_model(settings.encoder, device="cpu")
    encoder = getattr(getattr(loaded, "network", None), "base_model", None)
    layers = getattr(getattr(encoder, "encoder", None), "layer", None)
    if encoder is None or layers is None:
        raise EnsueError(
            f"{settings.encoder} is no BERT- or RoBERTa-style encoder, which a SuffixLM is built on."
        )
    limit = loaded.card.max_length or settings.shape.segment_tokens
    if settings.shape.segment_tokens > limit:
        raise EnsueError(f"{settings.encoder} takes {limit} tokens, fewer than --segment-tokens.")
    bare_encoder(encoder)
    if variant.kept_layers is not None:
        truncate_encoder(encoder, variant.kept_layers)
    if variant.trained == "all":
        encoder.requires_grad_(True)
    elif variant.trained == "last":
        for layer in encoder.encoder.layer[-TRAINED_LAYERS:]:
            layer.requires_grad_(True)
    return encoder, loaded.tokenizer, Path(loaded.tokenizer.name_or_path)


def _disjoint(made: dict[str, Corpus]) -> None:
    both = {s.work for s in made["train"].spans} & {s.work for s in made["dev"].spans}
    if both:
        raise EnsueError(
            f"{sorted(both)[0]} is in the training and in the dev works; leave it out of one of them."
        )


def _record(
    output: Path,
    asked: dict[str, Any],
    settings: SuffixSettings,
    made: dict[str, Corpus],
    fitted: Fitted,
    network: SuffixLM,
    processes: int,
) -> None:
    """Say in the folder what was trained, on what, on which machine, and how it ended."""
    trained = sum(p.numel() for p in network.parameters() if p.requires_grad)
    corpora = {
        name: {"works": len(c.spans), "segments": len(c), "skipped": c.skipped} for name, c in made.items()
    }
    facts = {
        "asked": asked,
        "variant": VARIANTS[settings.variant].about,
        "corpora": corpora,
        "parameters": sum(p.numel() for p in network.parameters()),
        "trained_parameters": trained,
        "fitted": asdict(fitted),
        "processes": processes,
        "environment": environment(),
    }
    write_record(output, facts)
    words = (
        f"SuffixLM-{settings.variant} on {corpora['train']['works']} works, {fitted.best_step} steps, "
        f"dev loss {fitted.best_loss:.4f}"
    )
    write_card_facts(output, training=words, source=f"trained by ensue from {settings.encoder}")
