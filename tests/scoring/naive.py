"""One text at a time, one forward pass each, the whole vocabulary at every position: the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


@torch.inference_mode()
def token_logprobs(model: Any, ids: Sequence[int], start: int) -> list[float]:
    """Log-probability of each token from `start` on, given all before it."""
    batch = torch.tensor([list(ids)])
    table = torch.log_softmax(model(input_ids=batch).logits[0].double(), -1)
    return [float(table[i - 1, ids[i]]) for i in range(start, len(ids))]


@torch.inference_mode()
def masked_logprobs(
    model: Any, ids: Sequence[int], targets: Sequence[int], hidden: Sequence[Sequence[int]], mask: int
) -> list[float]:
    """Log-probability of each target with its positions masked, one forward pass per target."""
    found = []
    for target, positions in zip(targets, hidden, strict=True):
        row = list(ids)
        for position in positions:
            row[position] = mask
        table = torch.log_softmax(model(input_ids=torch.tensor([row])).logits[0].double(), -1)
        found.append(float(table[target, ids[target]]))
    return found
