"""The loss of a summariser: cross-entropy of the summary's tokens alone, with labels smoothed in training."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ensue.train.summarizer.instances import Instance

_IGNORED = -100
# Above this a perplexity is only a number that cannot be written down.
_LARGEST = 80.0


class Predicted(NamedTuple):
    """Logits [rows, places, vocabulary] and the tokens that should stand there; -100 where nothing is asked."""

    logits: Tensor
    labels: Tensor


class Objective(nn.Module):  # type: ignore[misc]
    """A network of either kind, as the training loop calls it."""

    def __init__(self, network: Any, *, causal: bool, pad: int, smoothing: float) -> None:
        super().__init__()
        self.network = network
        self.causal, self.pad, self.smoothing = causal, pad, smoothing
        self._keeps = causal and "logits_to_keep" in inspect.signature(network.forward).parameters

    def forward(self, batch: Sequence[Instance]) -> Tensor:
        """The mean smoothed loss a token."""
        found = self.predict(batch)
        return nn.functional.cross_entropy(
            found.logits.float().flatten(0, 1),
            found.labels.flatten(),
            ignore_index=_IGNORED,
            label_smoothing=self.smoothing,
        )

    def total(self, batch: Sequence[Instance]) -> tuple[float, int]:
        """The summed plain loss of a batch and its tokens: unlike the smoothed one, it can be compared."""
        found = self.predict(batch)
        loss = nn.functional.cross_entropy(
            found.logits.float().flatten(0, 1), found.labels.flatten(), ignore_index=_IGNORED, reduction="sum"
        )
        return float(loss), int((found.labels != _IGNORED).sum())

    def predict(self, batch: Sequence[Instance]) -> Predicted:
        """What the network makes of a batch at every place of the summaries."""
        return self._continued(batch) if self.causal else self._translated(batch)

    def _translated(self, batch: Sequence[Instance]) -> Predicted:
        device = next(self.network.parameters()).device
        ids, mask = _padded([one.read for one in batch], self.pad, left=False)
        labels, _ = _padded([one.write for one in batch], _IGNORED, left=False)
        labels = labels.to(device)
        logits = self.network(
            input_ids=ids.to(device), attention_mask=mask.to(device), labels=labels, use_cache=False
        ).logits
        return Predicted(logits, labels)

    def _continued(self, batch: Sequence[Instance]) -> Predicted:
        """Padded on the left, so that all summaries stand at the end and only there logits are made."""
        device = next(self.network.parameters()).device
        ids, mask = _padded([(*one.read, *one.write) for one in batch], self.pad, left=True)
        labels, _ = _padded([one.write for one in batch], _IGNORED, left=True)
        places = labels.shape[1]
        keep = {"logits_to_keep": places + 1} if self._keeps else {}
        logits = self.network(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            position_ids=(mask.cumsum(1) - 1).clamp(min=0).to(device),
            use_cache=False,
            **keep,
        ).logits
        # A token is predicted at the place before it.
        return Predicted(logits[:, -places - 1 : -1], labels.to(device))


def held_out_figures(objective: Objective, batches: Iterable[Sequence[Instance]]) -> Mapping[str, float]:
    """Loss and perplexity a token."""
    loss, tokens = 0.0, 0
    for batch in batches:
        found, count = objective.total(batch)
        loss, tokens = loss + found, tokens + count
    mean = loss / max(tokens, 1)
    return {"dev_loss": mean, "dev_perplexity": exp(min(mean, _LARGEST))}


def _padded(rows: Sequence[Sequence[int]], fill: int, *, left: bool) -> tuple[Tensor, Tensor]:
    """Rows of one width, and 1 where they were not padded."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), fill, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for number, row in enumerate(rows):
        places = slice(width - len(row), width) if left else slice(0, len(row))
        ids[number, places] = torch.tensor(row, dtype=torch.long)
        mask[number, places] = 1
    return ids, mask
