"""What a reader learns by: a loss on every sentence of windows, and how often it finds the one that is strange."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ensue.backends.hf.reader import NOBODY, ReaderNetwork, SentenceTokens
from ensue.parallel import ahead
from ensue.train.batching import alike
from ensue.train.reader.versions import HARD, RANDOM, Version, Versions

# Windows are sorted by length within pools of so many batches, so that batches are even and still random.
_POOL = 50
# The first sentence of a window follows nothing, so nothing is asked of it.
_UNASKED = -1.0


class WindowBatch(NamedTuple):
    """Windows that are run together: their tokens, whose each is, and what each sentence is: 1 where it belongs."""

    ids: Tensor
    mask: Tensor
    owners: Tensor
    belongs: Tensor
    windows: list[int]


class WindowSet:
    """Windows as numbers of sentences, with the tokens of each sentence once."""

    def __init__(self, made: Versions, tokens: SentenceTokens, device: torch.device, fill: int) -> None:
        self._tokens, self._device, self._fill = tokens, device, fill
        self._sentences = tokens.of(made.sentences)
        self.windows = [self._fitting(one, tokens.room) for one in made.versions]
        self.lengths = [sum(len(self._sentences[i]) for i in one.sentences) for one in self.windows]

    def _fitting(self, version: Version, room: int) -> Version:
        """Leave out the last sentences of a window that is too long."""
        used = 0
        for place, number in enumerate(version.sentences):
            used += len(self._sentences[number])
            if used > room:
                kept = tuple(one for one in version.intruders if one[0] < place)
                return Version(version.sentences[:place], kept)
        return version

    def batches(self, size: int, seed: int, epoch: int) -> Iterator[WindowBatch]:
        """Yield the windows in the order of an epoch, those of like length together."""
        draw = random.Random(f"{seed} {epoch}")
        order = list(range(len(self.windows)))
        draw.shuffle(order)
        plan = alike(order, self.lengths.__getitem__, size, _POOL)
        draw.shuffle(plan)
        yield from ahead(self.batch, plan, depth=4)

    def batch(self, chosen: list[int]) -> WindowBatch:
        """Lay windows into rows."""
        rows = [self._tokens.row([self._sentences[i] for i in self.windows[one].sentences]) for one in chosen]
        width = max(len(row.ids) for row in rows)
        ids = np.full((len(rows), width), self._fill)
        mask, owners = np.zeros_like(ids), np.full_like(ids, NOBODY)
        belongs: list[float] = []
        for at, (one, row) in enumerate(zip(chosen, rows, strict=True)):
            window = self.windows[one]
            ids[at, : len(row.ids)] = row.ids
            mask[at, : len(row.ids)] = 1
            owners[at, : len(row.ids)] = np.where(row.owners == NOBODY, NOBODY, row.owners + len(belongs))
            strange = {place for place, _ in window.intruders}
            belongs += [
                _UNASKED if place == 0 else float(place not in strange)
                for place in range(len(window.sentences))
            ]
        made = (*map(torch.from_numpy, (ids, mask, owners)), torch.tensor(belongs))
        laid, hidden, theirs, right = (one.to(self._device, non_blocking=True) for one in made)
        return WindowBatch(laid, hidden, theirs, right, chosen)


class ReaderObjective(nn.Module):  # type: ignore[misc]
    """A reader's network, trained on windows."""

    def __init__(self, network: ReaderNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: WindowBatch) -> Tensor:
        """Return the mean loss of a batch's sentences."""
        return sentence_loss(self.logits(batch), batch.belongs)

    def logits(self, batch: WindowBatch) -> Tensor:
        """Return the logit of every sentence of a batch."""
        found: Tensor = self.network(batch.ids, batch.mask, batch.owners, len(batch.belongs))
        return found

    def figures(self, held: WindowSet, size: int) -> dict[str, float]:
        """Return the loss on held-out windows, and in how many with one intruder it belongs least, by kind."""
        losses, asked = 0.0, 0
        hits: dict[str, list[bool]] = {RANDOM: [], HARD: []}
        order = sorted(range(len(held.windows)), key=held.lengths.__getitem__)
        for at in range(0, len(order), size):
            batch = held.batch(order[at : at + size])
            logits = self.logits(batch).float()
            count = int((batch.belongs != _UNASKED).sum())
            losses += float(sentence_loss(logits, batch.belongs)) * count
            asked += count
            values, at_row = logits.cpu().numpy(), 0
            for one in batch.windows:
                window = held.windows[one]
                own = values[at_row : at_row + len(window.sentences)]
                at_row += len(own)
                if len(window.intruders) == 1:
                    place, kind = window.intruders[0]
                    hits[kind].append(1 + int(np.argmin(own[1:])) == place)
        rates = {f"dev_first_{kind}": float(np.mean(found)) for kind, found in hits.items() if found}
        return {"dev_loss": losses / max(1, asked), **rates}


def sentence_loss(logits: Tensor, belongs: Tensor) -> Tensor:
    """Return the mean loss of the sentences that are asked about."""
    asked = belongs != _UNASKED
    each = nn.functional.binary_cross_entropy_with_logits(logits, belongs.clamp(min=0.0), reduction="none")
    return (each * asked).sum() / asked.sum().clamp(min=1)
