"""The loss of a question generator: minus the log-probability of the question's tokens, and of nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from ensue.scoring.network import Network
from ensue.train.qg.batches import Batch


class QuestionObjective(nn.Module):  # type: ignore[misc]
    """A causal model with adapters; the head runs only where a question's token is next."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        self.network = Network(model)

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss a question token."""
        total, count = self.total(batch)
        return total / count

    def total(self, batch: Batch) -> tuple[Tensor, int]:
        """The summed loss, and of how many tokens."""
        hidden = self.network.hidden(self._put(batch.ids))
        states = hidden[self._put(batch.rows), self._put(batch.columns)]
        logits = self.network.logits(states)
        loss = nn.functional.cross_entropy(logits, self._put(batch.targets), reduction="sum")
        return loss, len(batch.targets)

    def _put(self, values: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(values).to(self.network.device)


def dev_figures(objective: QuestionObjective, batches: Iterable[Batch]) -> dict[str, float]:
    """The loss a question token on held-out rows, and the perplexity that it makes."""
    total, count = 0.0, 0
    for batch in batches:
        loss, tokens = objective.total(batch)
        total += float(loss.detach())
        count += tokens
    return {"dev_loss": total / count, "perplexity": math.exp(min(total / count, 700.0))}
