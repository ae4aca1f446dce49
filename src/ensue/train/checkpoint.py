"""Checkpoints of a training as one safetensors file each: nothing is pickled, nothing of two steps is mixed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from ensue.errors import EnsueError

TENSORS = "checkpoint.safetensors"


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


def save_checkpoint(
    folder: Path, module: nn.Module, optimiser: Any, progress: Progress, question: str = ""
) -> None:
    """Write what is needed to go on as one file, put in place whole: tensors, where they stand, and in what training.

    `question` is a digest of what else decides the steps to come, the data above all.
    """
    named = _trained(module)
    tensors = {f"model.{name}": value.detach().cpu().contiguous() for name, value in named.items()}
    states = _plain(optimiser).state
    for name, value in named.items():
        for key, moment in states.get(value, {}).items():
            tensors[f"optimiser.{key}.{name}"] = moment.detach().cpu().contiguous()
    part = folder / f".{TENSORS}.part"
    save_file(tensors, part, metadata={"progress": json.dumps(asdict(progress)), "question": question})
    part.replace(folder / TENSORS)


def load_checkpoint(folder: Path, module: nn.Module, optimiser: Any, question: str = "") -> Progress:
    """Put module and optimiser back to the last checkpoint; a fresh start where there is none."""
    if not (folder / TENSORS).exists():
        return Progress()
    try:
        facts, tensors = _read(folder / TENSORS)
        progress = Progress(**json.loads(facts["progress"]))
        named = _trained(module)
        shapes = {name: tensors[f"model.{name}"].shape for name in named}
        other = [name for name, value in named.items() if value.shape != shapes[name]]
        if other:
            raise ValueError(f"{other[0]} is {tuple(shapes[other[0]])}")
    except Exception as error:
        reason = " ".join(str(error).split())[:150]
        raise EnsueError(
            f"The checkpoint in {folder} does not fit this training ({reason}); start again in another folder."
        ) from error
    if facts["question"] != question:
        raise EnsueError(
            f"The checkpoint in {folder} is of a training on other data; put that data back, or start again in "
            f"another folder."
        )
    with torch.no_grad():
        for name, value in named.items():
            value.copy_(tensors[f"model.{name}"])
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


def _read(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    with safe_open(path, framework="pt") as file:
        return dict(file.metadata()), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _trained(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value for name, value in module.named_parameters() if value.requires_grad}


def _plain(optimiser: Any) -> torch.optim.Optimizer:
    """The optimiser itself, without accelerate's wrapping."""
    inner: torch.optim.Optimizer = getattr(optimiser, "optimizer", optimiser)
    return inner
