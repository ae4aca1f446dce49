"""Keeps weights: a fine-tuned encoder as a Hugging Face folder, and an intermediate one within the run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file

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
        part.replace(place)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise EnsueError(
            f"{place} cannot be written: {error.strerror}; finished tasks are kept, make room and run again with "
            f"--resume."
        ) from error
    return place


def keep_weights(path: Path, trunk: Any, key: str) -> None:
    """Weights in one file that says which question they belong to."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in trunk.state_dict().items()}
    save_file(tensors, path, metadata={"key": key})


def take_weights(path: Path, trunk: Any, key: str) -> bool:
    """Put kept weights into the encoder; False where there are none, or they belong to another question."""
    if not path.is_file():
        return False
    try:
        with safe_open(path, "pt") as held:
            if (held.metadata() or {}).get("key") != key:
                return False
            trunk.load_state_dict({name: held.get_tensor(name) for name in held.keys()})  # noqa: SIM118
    except Exception:  # a file cut short raises types of the library's own
        return False
    return True
