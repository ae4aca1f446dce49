"""The losses on a sentence's vector: words of its neighbours and titles, its level and its positions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from ensue.backends.discourse.network import DiscourseNetwork
from ensue.train.encoder.batches import Batch, Ragged
from ensue.train.encoder.settings import LEVELS, TERMS, EncoderSettings

_BAGS = ("before", "after", "section", "document")


def bag_losses(logits: Tensor, targets: Tensor, lengths: Tensor) -> Tensor:
    """For each row, minus the mean log-probability of its target words under one softmax over the vocabulary.

    A word that occurs twice counts twice. Rows without targets give 0. Only the scores of target words are
    gathered; the rest of the vocabulary enters by one log-sum-exp a row.
    """
    logits = logits.float()
    inside = torch.arange(targets.shape[1], device=targets.device) < lengths[:, None]
    hits = (logits.gather(1, targets) * inside).sum(1) / lengths.clamp(min=1)
    return torch.where(lengths > 0, logits.logsumexp(1) - hits, 0.0)


def class_losses(logits: Tensor, targets: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Cross-entropy of each row; where `allowed` is given, only that many first classes of a row can be right."""
    logits = logits.float()
    if allowed is not None:
        beyond = torch.arange(logits.shape[1], device=logits.device) >= allowed[:, None]
        logits = logits.masked_fill(beyond, float("-inf"))
    return nn.functional.cross_entropy(logits, targets, reduction="none")


def share_class(position: Tensor, total: Tensor, classes: int) -> Tensor:
    """Which of `classes` equal parts of the whole a position lies in: the first of 40 in the first of 20."""
    return torch.div(position * classes, total, rounding_mode="floor")


def feed_forward(inputs: int, hidden: int, outputs: int, dropout: float) -> nn.Sequential:
    """A decoder's network: two hidden layers with ReLU."""
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, outputs),
    )


class Objective(nn.Module):  # type: ignore[misc]
    """The encoder with one decoder for each term of the losses asked for."""

    def __init__(self, network: DiscourseNetwork, settings: EncoderSettings) -> None:
        super().__init__()
        self.network, self.settings = network, settings
        shape, hidden, dropout = network.shape, settings.hidden, settings.dropout
        self.decoders = nn.ModuleDict()
        for term in settings.terms:
            if term in _BAGS:
                bag = feed_forward(shape.width, hidden, hidden, dropout)
                self.decoders[term] = nn.Sequential(*bag, nn.Linear(hidden, shape.vocabulary))
            else:
                classes = LEVELS if term == "level" else settings.position_classes
                self.decoders[term] = feed_forward(shape.width, hidden, classes, dropout)

    def forward(self, batch: Batch) -> Tensor:
        """The weighted sum of the losses; each term is the mean over the sentences that have its target."""
        terms = self.term_losses(batch)
        means = {name: losses.sum() / present.sum().clamp(min=1) for name, (losses, present) in terms.items()}
        return torch.stack(
            [
                w * torch.stack([means[term] for term in TERMS[loss]]).sum()
                for loss, w in self._weights().items()
            ]
        ).sum()

    def term_losses(self, batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
        """For each term, the loss of each sentence and whether the sentence has its target."""
        device = self.network.embedding.weight.device
        vectors = self.network(_on(batch.words.table, device), torch.from_numpy(batch.words.lengths))
        found = {}
        for term in self.settings.terms:
            logits = self.decoders[term](vectors)
            if term in _BAGS:
                bag: Ragged = getattr(batch, term)
                lengths = _on(bag.lengths, device)
                found[term] = (bag_losses(logits, _on(bag.table, device), lengths), lengths > 0)
            else:
                found[term] = self._placed(term, logits, batch)
        return found

    def _placed(self, term: str, logits: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The losses of a term that predicts a class, which every sentence has."""
        position = _on(getattr(batch, term), logits.device)
        classes = logits.shape[1]
        if term == "level":
            losses = class_losses(logits, position.clamp(max=classes - 1))
        else:
            total = _on(getattr(batch, f"{term}s"), logits.device)
            if self.settings.positions == "share":
                losses = class_losses(logits, share_class(position, total, classes))
            else:
                losses = class_losses(logits, position.clamp(max=classes - 1), total)
        return losses, torch.ones_like(losses, dtype=torch.bool)

    def _weights(self) -> Mapping[str, float]:
        return self.settings.losses


class Tally:
    """Losses summed over many batches, so that a dev loss does not depend on how they were cut."""

    def __init__(self, settings: EncoderSettings) -> None:
        self._settings = settings
        self._sums: dict[str, Tensor] = {}

    def add(self, terms: Mapping[str, tuple[Tensor, Tensor]]) -> None:
        for name, (losses, present) in terms.items():
            both = torch.stack([losses.detach().double().sum(), present.double().sum()])
            self._sums[name] = self._sums[name] + both if name in self._sums else both

    def figures(self) -> dict[str, float]:
        """`dev_loss` and each loss alone, unweighted."""
        means = {name: float(both[0]) / max(float(both[1]), 1.0) for name, both in self._sums.items()}
        found = {loss: sum(means[term] for term in TERMS[loss]) for loss in self._settings.losses}
        total = sum(weight * found[loss] for loss, weight in self._settings.losses.items())
        return {"dev_loss": total, **{f"dev_{loss}": value for loss, value in found.items()}}


def _on(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]], device: torch.device) -> Tensor:
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
