"""Keeps weights: a fine-tuned encoder as a Hugging Face folder, and an intermediate one within the run."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from ensue.atomic import make_readable
from ensue.errors import EnsueError
from ensue.models.card import ModelCard, write_card_facts
from ensue.train.finetune.training import Trained

FOLDER, HEAD = "finetuned", "head"


def save_trained(folder: Path, trained: Trained, tokenizer: Any, card: ModelCard, seed: int) -> Path:
    """The encoder with tokenizer and card, as any tool reads them, and its head, in `finetuned/TASK-SEED`."""
    place = folder / FOLDER / f"{trained.spec.name.replace('/', '-')}-{seed}"
    part = place.with_name(f".{place.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        trained.network.trunk.save_pretrained(part)
        tokenizer.save_pretrained(part)
        head = {
            name: value.detach().cpu().contiguous()
            for name, value in trained.network.state_dict().items()
            if not name.startswith("trunk.")
        }
        save_file(head, part / f"{HEAD}.safetensors.part")
        # Under a name of its own ending, so that nobody takes the head for a shard of the encoder.
        (part / f"{HEAD}.safetensors.part").replace(part / f"{HEAD}.tensors")
        about = {"task": trained.spec.name, "labels": trained.spec.labels, "form": trained.spec.form}
        facts = {**about, "scale": trained.scale, "training": trained.record}
        (part / f"{HEAD}.json").write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
        training = f"{card.name} fine-tuned on {trained.spec.name}, seed {seed}"
        write_card_facts(part, source=card.source, licence=card.licence, training=training)
        shutil.rmtree(place, ignore_errors=True)
        make_readable(part)
        part.replace(place)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise EnsueError(
            f"{place} cannot be written: {error.strerror}; finished tasks are kept, make room and run again with "
            f"--resume."
        ) from error
    return place


def keep_weights(path: Path, trunk: Any) -> str:
    """Write weights to one file, whole or not at all; return its digest."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in trunk.state_dict().items()}
    part = path.with_name(f"{path.name}.part")
    try:
        save_file(tensors, part)
        part.replace(path)
    except (OSError, SafetensorError) as error:
        part.unlink(missing_ok=True)
        raise EnsueError(
            f"{path} cannot be written: {error}; finished tasks are kept, make room and run again with --resume."
        ) from error
    return _digest(path)


def take_weights(path: Path, trunk: Any, digest: str | None) -> bool:
    """Put kept weights into the encoder; False where there are none, or not those with this digest."""
    if digest is None or not path.is_file() or _digest(path) != digest:
        return False
    trunk.load_state_dict(load_file(path))
    return True


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
