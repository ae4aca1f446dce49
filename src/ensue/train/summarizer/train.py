"""Training a summariser on SQuALITY: stories in, a model folder out, with its log, its record and its card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ensue.atomic import make_readable
from ensue.backends.names import load_model
from ensue.benchmarks.squality.data import Story, check_references, examples, read_stories
from ensue.benchmarks.squality.versions import find_file
from ensue.benchmarks.summaries.retrieval import Retriever
from ensue.environment import environment
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.models.protocols import Encoder, require
from ensue.train.loop import Fitted, Loop, Told, make_accelerator
from ensue.train.record import begin_record, check_folder, write_record
from ensue.train.summarizer.instances import (
    Instance,
    Shape,
    batches_in,
    epoch_batches,
    fixed_batches,
    make_instances,
)
from ensue.train.summarizer.objective import Objective, held_out_figures
from ensue.train.summarizer.settings import SummarizerSettings

_KINDS = ("causal", "seq2seq")


class Stories(NamedTuple):
    """What is trained on and what decides, with the version they are of."""

    train: list[Story]
    dev: list[Story]
    version: str


def read_splits(data: Path, version: str | None) -> Stories:
    """The training and dev stories, four references each."""
    found = {}
    label = ""
    for split in ("train", "dev"):
        if data.is_file():
            raise EnsueError(
                f"{data} is a file; training needs SQuALITY's folder, with train.jsonl and dev.jsonl in it."
            )
        path, label = find_file(data, version, split)
        found[split] = read_stories(path)
        check_references(found[split], path)
    return Stories(found["train"], found["dev"], label)


def train_one(
    settings: SummarizerSettings,
    stories: Stories,
    *,
    output: Path,
    resume: bool = False,
    told: Told | None = None,
) -> Fitted:
    """Train once with these settings and leave the model that was best on dev in `output`."""
    asked = {"settings": asdict(settings), "data": stories.version, "stories": _sizes(stories)}
    accelerator = make_accelerator(settings.loop)
    if accelerator.is_main_process:
        check_folder(output, asked, resume)
    network, tokenizer, shape = _starting_point(settings)
    sets = _instances(settings, stories, tokenizer, shape)
    torch.manual_seed(settings.loop.seed)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (tokenizer.eos_token_id or 0)
    objective = Objective(network, causal=shape.causal, pad=pad, smoothing=settings.label_smoothing)
    objective.to(accelerator.device)
    groups = accelerator.num_processes * settings.loop.accumulate
    steps = batches_in(len(sets["train"]), settings.batch) // groups
    loop = Loop(
        objective,
        settings.counted(max(steps, 1)),
        output,
        accelerator,
        save_best=lambda: _save(output, network, tokenizer),
        told=told,
    )

    def batches(epoch: int) -> Iterator[list[Instance]]:
        return epoch_batches(sets["train"], settings.batch, settings.loop.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        return held_out_figures(objective, fixed_batches(sets["dev"], settings.batch))

    if accelerator.is_main_process:
        begin_record(output, asked)
    fitted = loop.run(batches, evaluate, resume=resume)
    if accelerator.is_main_process:
        facts = {
            "asked": asked,
            "model": f"{settings.model} for SQuALITY",
            "instances": {name: len(found) for name, found in sets.items()},
            "summaries_cut": {name: sum(one.cut for one in found) for name, found in sets.items()},
            "tokens_read": {name: sum(len(one.read) for one in found) for name, found in sets.items()},
            "parameters": sum(p.numel() for p in network.parameters()),
            "fitted": asdict(fitted),
            "processes": accelerator.num_processes,
            "environment": environment(),
        }
        write_record(output, facts)
        _write_card(output, settings, stories, fitted)
    return fitted


def _starting_point(settings: SummarizerSettings) -> tuple[Any, Any, Shape]:
    """The network, every weight of it to be trained, its tokenizer, and what it may read and write."""
    loaded: Any = load_model(settings.model, device="cpu")
    card = loaded.card
    if card.kind not in _KINDS or not hasattr(loaded, "network"):
        raise EnsueError(
            f"{card.name} cannot be trained to summarise: it is of kind {card.kind}, and a sequence-to-sequence or "
            f"causal model is needed."
        )
    causal = card.kind == "causal"
    most = settings.max_input
    if card.max_length is not None:
        most = min(most, card.max_length - (settings.max_output if causal else 0))
    if most < 1:
        raise EnsueError(
            f"{card.name} takes {card.max_length} tokens, which leaves nothing to read beside summaries of "
            f"{settings.max_output}; set --max-output lower."
        )
    network = loaded.network.float().requires_grad_(True)
    if settings.checkpointing:
        network.gradient_checkpointing_enable()
    return network, loaded.tokenizer, Shape(causal, most, settings.max_output)


def _instances(
    settings: SummarizerSettings, stories: Stories, tokenizer: Any, shape: Shape
) -> dict[str, list[Instance]]:
    retriever = None
    if settings.retrieve is not None:
        encoder = require(load_model(settings.retrieve), Encoder, f"Retrieving with {settings.retrieve}")
        retriever = Retriever(encoder)
    return {
        name: make_instances(list(examples(found)), tokenizer, shape, retriever)
        for name, found in (("train", stories.train), ("dev", stories.dev))
    }


def _save(output: Path, network: Any, tokenizer: Any) -> None:
    network.save_pretrained(output)
    tokenizer.save_pretrained(output)
    make_readable(output)


def _sizes(stories: Stories) -> dict[str, int]:
    return {"train": len(stories.train), "dev": len(stories.dev)}


def _write_card(output: Path, settings: SummarizerSettings, stories: Stories, fitted: Fitted) -> None:
    retrieved = f", sentences retrieved with {settings.retrieve}" if settings.retrieve else ""
    words = (
        f"{settings.model} fine-tuned to summarise on {len(stories.train)} stories of SQuALITY {stories.version}"
        f"{retrieved}, {settings.name}, {fitted.best_step} steps, dev loss {fitted.best_loss:.4f}"
    )
    write_card_facts(output, training=words, source="trained by ensue")
