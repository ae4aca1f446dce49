"""What a step of fine-tuning is made of: losses of every form, AdamW, its schedule, and mixed precision."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ensue.benchmarks.nlu.examples import Form
from ensue.train.finetune.heads import TaskNetwork
from ensue.train.finetune.packed import Batch
from ensue.train.finetune.recipe import Recipe

# A new head learns faster than the encoder under it.
_HEAD_FASTER = 10.0


def loss_of(form: Form, outputs: Tensor, targets: Tensor, batch: Batch) -> Tensor:
    """The mean loss of a batch from outputs [rows, …] and the rows' targets.

    Classes: cross-entropy; scores: squared error; choices: cross-entropy over an example's choices; entities: each
    for itself, right or wrong.
    """
    functional = nn.functional
    if form == "score":
        return functional.mse_loss(outputs[:, 0], targets)
    if form == "entity":
        return functional.binary_cross_entropy_with_logits(outputs[:, 0], targets)
    if form == "choice":
        table = outputs.new_full((len(batch.examples) * batch.most,), -torch.inf)
        logs = table.scatter(0, batch.slots, outputs[:, 0]).view(-1, batch.most).log_softmax(1)
        return -(logs.view(-1)[batch.slots] * targets).sum() / len(batch.examples)
    return functional.cross_entropy(outputs, targets)


def autocast(device: torch.device, precision: str) -> Any:
    """bf16 where asked for or, with `auto`, on a GPU; otherwise nothing."""
    if precision == "bf16" or (precision == "auto" and device.type == "cuda"):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return contextlib.nullcontext()


def optimiser_for(network: TaskNetwork, recipe: Recipe) -> torch.optim.Optimizer:
    """AdamW in one kernel a step, with decay for matrices alone."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            # Biases, norms and single weights are not drawn towards 0.
            plain = parameter.ndim < 2
            rate = recipe.learning_rate * (1.0 if name.startswith("trunk.") else _HEAD_FASTER)
            groups.setdefault((rate, 0.0 if plain else recipe.weight_decay), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": held, "lr": rate, "weight_decay": decay} for (rate, decay), held in groups.items()],
        fused=True,
    )


def linear(total: int, warmup: float) -> Callable[[int], float]:
    """Up to 1 over the warmup, then down to 0 at the end."""
    rise = max(1, round(total * warmup)) if warmup > 0 else 0

    def factor(step: int) -> float:
        if step < rise:
            return (step + 1) / rise
        return max(0.0, (total - step) / max(1, total - rise))

    return factor
