"""Checkpoints of a training as safetensors and JSON: nothing is pickled."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from ensue.errors import EnsueError

TENSORS, STATE = "checkpoint.safetensors", "checkpoint.json"


@dataclass
class Progress:
    """Where a training stands: steps, the epoch and the batches of it that are done, the best so far."""

    step: int = 0
    epoch: int = 0
    batches: int = 0
    best_loss: float = float("inf")
    best_step: int = 0
    best: dict[str, float] = field(default_factory=dict)
    bad: int = 0
    seconds: float = 0.0


def save_checkpoint(folder: Path, module: nn.Module, optimiser: Any, progress: Progress) -> None:
    """Write what is needed to go on; each file whole, the JSON last, naming the step its tensors belong to."""
    named = _trained(module)
    tensors = {f"model.{name}": value.detach().cpu().contiguous() for name, value in named.items()}
    states = _plain(optimiser).state
    for name, value in named.items():
        for key, moment in states.get(value, {}).items():
            tensors[f"optimiser.{key}.{name}"] = moment.detach().cpu().contiguous()
    part = folder / f".{TENSORS}.part"
    save_file(tensors, part, metadata={"step": str(progress.step)})
    text = json.dumps({**asdict(progress), "tensors": TENSORS}, indent=2) + "\n"
    state_part = folder / f".{STATE}.part"
    state_part.write_text(text, "utf-8")
    part.replace(folder / TENSORS)
    state_part.replace(folder / STATE)


def load_checkpoint(folder: Path, module: nn.Module, optimiser: Any) -> Progress:
    """Put module and optimiser back to the last checkpoint; a fresh start where there is none."""
    if not (folder / STATE).exists():
        return Progress()
    try:
        facts = json.loads((folder / STATE).read_text("utf-8"))
        facts.pop("tensors")
        progress = Progress(**facts)
        tensors = load_file(folder / TENSORS)
        named = _trained(module)
        with torch.no_grad():
            for name, value in named.items():
                value.copy_(tensors[f"model.{name}"])
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise EnsueError(
            f"The checkpoint in {folder} does not fit this training ({reason}); start again in another folder."
        ) from error
    states = _plain(optimiser).state
    for name, value in named.items():
        found = {
            key.split(".")[1]: tensor
            for key, tensor in tensors.items()
            if key.startswith("optimiser.") and key.split(".", 2)[2] == name
        }
        if found:
            # The step counter stays where torch keeps it, the moments beside their parameter.
            states[value] = {
                key: tensor if key == "step" else tensor.to(value.device) for key, tensor in found.items()
            }
    return progress


def _trained(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _plain(optimiser: Any) -> torch.optim.Optimizer:
    """The optimiser itself, without accelerate's wrapping."""
    inner: torch.optim.Optimizer = getattr(optimiser, "optimizer", optimiser)
    return inner
