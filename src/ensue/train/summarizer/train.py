"""Train a summariser on SQuALITY: once, or once for every point of a grid, of which the best on dev is kept."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from accelerate import Accelerator

from ensue.atomic import make_readable
from ensue.backends.hf.loading import CHECKPOINT, RECORD
from ensue.backends.names import load_model
from ensue.benchmarks.squality.data import Story, check_references, examples, find_file, read_stories
from ensue.benchmarks.summaries.extractive import Retriever
from ensue.errors import EnsueError, RunFailed
from ensue.models.protocols import Encoder, require
from ensue.progress import Progress, ignore
from ensue.train.loop import Fitted
from ensue.train.run import Described, Job, begin_record, check_folder, run_training, write_record
from ensue.train.summarizer.instances import (
    Instance,
    SummaryObjective,
    epoch_batches,
    fixed_batches,
    held_out_figures,
    make_instances,
)
from ensue.train.summarizer.options import SummarizerOptions

_KINDS = ("causal", "seq2seq")
# Where the trainings of a grid have their folders.
GRID = "grid"


class Stories(NamedTuple):
    """What is trained on and what decides, with the version they are of."""

    train: list[Story]
    dev: list[Story]
    version: str


def _read_splits(data: Path, version: str | None) -> Stories:
    """Read the training and dev stories, four references each."""
    if data.is_file():
        raise EnsueError(
            f"{data} is a file; training needs SQuALITY's folder, with train.jsonl and dev.jsonl in it."
        )
    found, label = {}, ""
    for split in ("train", "dev"):
        path, label = find_file(data, version, split)
        found[split] = read_stories(path)
        check_references(found[split], path)
    return Stories(found["train"], found["dev"], label)


def train_summarizer(options: SummarizerOptions, progress: Progress | None = None) -> Fitted:
    """Train at every point, each in its own folder where there are several; only the best one's weights are kept."""
    points = options.points()
    stories = _read_splits(options.data.expanduser(), options.version)
    if len(points) == 1:
        return _train_one(points[0], stories, progress or ignore)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise EnsueError(
            "A grid is searched by one process; train its points one at a time on several devices."
        )
    output = options.output
    asked = {"grid": [point.asked()["settings"] for point in points], "data": stories.version}
    check_folder(output, asked, options.resume)
    begin_record(output, asked)
    best = ""
    fitted: dict[str, Fitted] = {}
    lines: list[dict[str, Any]] = []
    for place, point in enumerate(points):
        fitted[point.name] = _trained(point, stories, progress or ignore, place, len(points))
        lines.append({"name": point.name, **point.point, "dev_loss": fitted[point.name].best_loss})
        (output / GRID / point.name / CHECKPOINT).unlink(missing_ok=True)
        loser = best and max(best, point.name, key=lambda name: fitted[name].best_loss)
        best = best if loser == point.name else point.name
        if loser:
            # By the hundred, the weights of those that lost would fill a disk; their records stay.
            for path in (output / GRID / loser).glob("*.safetensors"):
                path.unlink(missing_ok=True)
    _keep(output / GRID / best, output)
    write_record(output, {**_record(output / GRID / best), "asked": asked, "best": best, "grid": lines})
    return fitted[best]


def _trained(point: SummarizerOptions, stories: Stories, progress: Progress, place: int, of: int) -> Fitted:
    """Return how a point's training ended: as its folder says, where it is finished."""
    folder = point.output / GRID / point.name
    fitted = _record(folder).get("fitted")
    if fitted is not None:
        return Fitted(**fitted)

    def report(done: int, total: int, unit: str) -> None:
        progress(place * total + done, of * total, unit)

    # A first start that was stopped before this point leaves no folder; going on then begins it.
    going_on = point.resume and (folder / RECORD).exists()
    return _train_one(replace(point, output=folder, resume=going_on), stories, report)


def _record(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads((folder / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _keep(folder: Path, output: Path) -> None:
    """Bring the best model and its log up into the output."""
    if not any(folder.glob("*.safetensors")) and not any(output.glob("*.safetensors")):
        raise RunFailed(f"{folder} has lost its weights, so the best training is not there; train it again.")
    for path in sorted(folder.iterdir()):
        if path.name == RECORD or path.is_dir() or path.name.startswith("."):
            continue
        if path.suffix == ".safetensors":
            path.replace(output / path.name)
        else:
            shutil.copy2(path, output / path.name)


def _train_one(options: SummarizerOptions, stories: Stories, progress: Progress) -> Fitted:
    """Train once and leave the model that was best on dev in the output."""
    sizes = {"train": len(stories.train), "dev": len(stories.dev)}
    asked = {**options.asked(), "data": stories.version, "stories": sizes}
    return run_training(
        options, lambda accelerator, _: _prepare(options, stories, accelerator), progress, asked
    )


def _prepare(options: SummarizerOptions, stories: Stories, accelerator: Accelerator) -> Job:
    network, tokenizer, causal, most = _starting_point(options)
    retriever = None
    if options.retrieve is not None:
        retriever = Retriever(
            require(load_model(options.retrieve), Encoder, f"Retrieving with {options.retrieve}")
        )
    room = {"max_input": most, "max_output": options.max_output}
    sets = {
        name: make_instances(list(examples(found)), tokenizer, retriever, causal=causal, **room)
        for name, found in (("train", stories.train), ("dev", stories.dev))
    }
    torch.manual_seed(options.seed)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (tokenizer.eos_token_id or 0)
    smoothing = options.point["label_smoothing"]
    objective = SummaryObjective(network, causal=causal, pad=pad, smoothing=smoothing)
    objective.to(accelerator.device)

    def batches(epoch: int) -> Iterator[list[Instance]]:
        return epoch_batches(sets["train"], options.batch, options.seed, epoch)

    def evaluate() -> Mapping[str, float]:
        return held_out_figures(objective, fixed_batches(sets["dev"], options.batch))

    def save() -> None:
        network.save_pretrained(options.output)
        tokenizer.save_pretrained(options.output)
        make_readable(options.output)

    def describe(facts: Mapping[str, Any], fitted: Fitted) -> Described:
        retrieved = f", sentences retrieved with {options.retrieve}" if options.retrieve else ""
        words = (
            f"{options.model} fine-tuned to summarise on {len(stories.train)} stories of SQuALITY {stories.version}"
            f"{retrieved}, {options.name}, {fitted.best_step} steps, dev loss {fitted.best_loss:.4f}"
        )
        return Described(words, "trained by ensue")

    return Job(
        objective,
        options.counted(-(-len(sets["train"]) // options.batch), accelerator.num_processes),
        batches,
        evaluate,
        save,
        describe,
        facts={
            "model": f"{options.model} for SQuALITY",
            "instances": {name: len(found) for name, found in sets.items()},
            "summaries_cut": {name: sum(one.cut for one in found) for name, found in sets.items()},
            "tokens_read": {name: sum(len(one.read) for one in found) for name, found in sets.items()},
            "parameters": sum(p.numel() for p in network.parameters()),
        },
    )


def _starting_point(options: SummarizerOptions) -> tuple[Any, Any, bool, int]:
    """Return the network, all its weights to be trained, its tokenizer, whether it is causal, what it may read."""
    loaded: Any = load_model(options.model, device="cpu", dtype="float32")
    card = loaded.card
    if card.kind not in _KINDS or not hasattr(loaded, "network"):
        raise EnsueError(
            f"{card.name} cannot be trained to summarise: it is of kind {card.kind}, and a sequence-to-sequence or "
            f"causal model is needed."
        )
    causal = card.kind == "causal"
    most = options.max_input
    if card.max_length is not None:
        most = min(most, card.max_length - (options.max_output if causal else 0))
    if most < 1:
        raise EnsueError(
            f"{card.name} takes {card.max_length} tokens, which leaves nothing to read beside summaries of "
            f"{options.max_output}; set --max-output lower."
        )
    network = loaded.network.float().requires_grad_(True)
    if options.checkpointing:
        network.gradient_checkpointing_enable()
    return network, loaded.tokenizer, causal, most
