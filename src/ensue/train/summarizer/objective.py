"""The loss of a summariser: cross-entropy of the summary's tokens alone, with labels smoothed in training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ensue.scoring.network import Network
from ensue.train.summarizer.instances import Instance

_IGNORED = -100
# Above this a perplexity is only a number that cannot be written down.
_LARGEST = 80.0


class Predicted(NamedTuple):
    """Logits [places, vocabulary] and the tokens that should stand there; -100 where nothing is asked."""

    logits: Tensor
    labels: Tensor


class Objective(nn.Module):  # type: ignore[misc]
    """A network of either kind, as the training loop calls it."""

    def __init__(self, network: Any, *, causal: bool, pad: int, smoothing: float) -> None:
        super().__init__()
        self.network = network
        self.causal, self.pad, self.smoothing = causal, pad, smoothing

    @property
    def _trunk(self) -> Network:
        return Network(self.network)

    def forward(self, batch: Sequence[Instance]) -> Tensor:
        """The mean smoothed loss a token."""
        found = self.predict(batch)
        return nn.functional.cross_entropy(
            found.logits.float(),
            found.labels,
            ignore_index=_IGNORED,
            label_smoothing=self.smoothing,
        )

    def total(self, batch: Sequence[Instance]) -> tuple[float, int]:
        """The summed plain loss of a batch and its tokens: unlike the smoothed one, it can be compared."""
        found = self.predict(batch)
        loss = nn.functional.cross_entropy(
            found.logits.float(), found.labels, ignore_index=_IGNORED, reduction="sum"
        )
        return float(loss), int((found.labels != _IGNORED).sum())

    def predict(self, batch: Sequence[Instance]) -> Predicted:
        """What the network makes of a batch at every place of the summaries."""
        return self._continued(batch) if self.causal else self._translated(batch)

    def _translated(self, batch: Sequence[Instance]) -> Predicted:
        device = next(self.network.parameters()).device
        ids, mask = _padded([one.read for one in batch], self.pad)
        labels, _ = _padded([one.write for one in batch], _IGNORED)
        labels = labels.to(device)
        logits = self.network(
            input_ids=ids.to(device), attention_mask=mask.to(device), labels=labels, use_cache=False
        ).logits
        return Predicted(logits.flatten(0, 1), labels.flatten())

    def _continued(self, batch: Sequence[Instance]) -> Predicted:
        """Padded on the right, where a left-to-right model never looks, so that no mask is needed; the head runs only
        where a summary's token is next."""
        ids, _ = _padded([(*one.read, *one.write) for one in batch], self.pad)
        hidden = self._trunk.hidden(ids.to(self._trunk.device))
        states = [
            hidden[row, len(one.read) - 1 : one.size - 1]  # a token is predicted at the place before it
            for row, one in enumerate(batch)
        ]
        labels = torch.tensor([token for one in batch for token in one.write], device=hidden.device)
        return Predicted(self._trunk.logits(torch.cat(states)), labels)


def held_out_figures(objective: Objective, batches: Iterable[Sequence[Instance]]) -> Mapping[str, float]:
    """Loss and perplexity a token."""
    loss, tokens = 0.0, 0
    for batch in batches:
        found, count = objective.total(batch)
        loss, tokens = loss + found, tokens + count
    mean = loss / max(tokens, 1)
    return {"dev_loss": mean, "dev_perplexity": exp(min(mean, _LARGEST))}


def _padded(rows: Sequence[Sequence[int]], fill: int) -> tuple[Tensor, Tensor]:
    """Rows of one width, and 1 where they were not padded."""
    width = max(map(len, rows))
    ids = torch.full((len(rows), width), fill, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[number, : len(row)] = 1
    return ids, mask
