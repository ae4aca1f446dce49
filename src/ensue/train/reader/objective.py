"""What a reader learns by: a loss on every sentence of windows, and how often it finds the one that is strange."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ensue.backends.hf.reader import SentenceTokens
from ensue.backends.hf.reader_network import NOBODY, ReaderNetwork
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
    """Windows as numbers of sentences, whose tokens lie end to end on the device: only numbers travel."""

    def __init__(self, made: Versions, tokens: SentenceTokens, device: torch.device, fill: int) -> None:
        self._device, self._fill, self._first = device, fill, tokens.first
        sentences = tokens.of(made.sentences)
        self._counts = np.array([*map(len, sentences), 0])
        lengths = torch.from_numpy(self._counts)
        # The last sentence is none, and fills up windows of fewer sentences than the longest.
        self._lengths, self._starts = (
            one.to(device) for one in (lengths, (lengths.cumsum(0) - lengths).clamp(min=0))
        )
        self._tokens = torch.from_numpy(np.concatenate([*sentences, np.array([fill])])).to(device)
        self.windows = [self._fitting(one, tokens.room) for one in made.versions]
        self._numbers = [np.array(one.sentences) for one in self.windows]
        self.lengths = [int(self._counts[one].sum()) for one in self._numbers]

    def _fitting(self, version: Version, room: int) -> Version:
        """Leave out the last sentences of a window that is too long."""
        used = np.cumsum(self._counts[list(version.sentences)])
        most = int(np.searchsorted(used, room, "right"))
        return Version(version.sentences[:most], tuple(one for one in version.intruders if one[0] < most))

    def batches(self, size: int, seed: int, epoch: int) -> Iterator[WindowBatch]:
        """Yield the windows in the order of an epoch, those of like length together."""
        draw = random.Random(f"{seed} {epoch}")
        order = list(range(len(self.windows)))
        draw.shuffle(order)
        plan = alike(order, self.lengths.__getitem__, size, _POOL)
        draw.shuffle(plan)
        yield from map(self.batch, plan)

    def batch(self, chosen: list[int]) -> WindowBatch:
        """Lay windows into rows, on the device."""
        counts = [len(self._numbers[one]) for one in chosen]
        numbers = np.full((len(chosen), max(counts)), len(self._counts) - 1)
        belongs: list[npt.NDArray[np.float64]] = []
        for row, one in enumerate(chosen):
            numbers[row, : counts[row]] = self._numbers[one]
            right = np.ones(counts[row])
            right[[0, *(place for place, _ in self.windows[one].intruders)]] = 0.0
            right[0] = _UNASKED
            belongs.append(right)
        width = len(self._first) + max(self.lengths[one] for one in chosen)
        firsts = np.cumsum(counts) - counts
        moved = (numbers, firsts[:, None], np.concatenate(belongs).astype(np.float32))
        theirs, before, asked = (torch.from_numpy(one).to(self._device, non_blocking=True) for one in moved)
        return WindowBatch(*self._laid(theirs, before, width), asked, chosen)

    def _laid(self, numbers: Tensor, before: Tensor, width: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return tokens, mask and owners of windows given as numbers of sentences; `before` is how many sentences
        the rows above have."""
        lengths = self._lengths[numbers]
        ends = lengths.cumsum(1) + len(self._first)
        places = torch.arange(width, device=self._device).repeat(len(numbers), 1)
        slots = torch.searchsorted(ends, places, right=True)
        inside = slots < numbers.shape[1]
        slots = slots.clamp(max=numbers.shape[1] - 1)
        starts = (self._starts[numbers] - ends + lengths).gather(1, slots)
        ids = torch.where(inside, self._tokens[(starts + places).clamp(0, len(self._tokens) - 1)], self._fill)
        owners = torch.where(inside, slots + before, NOBODY)
        for place, token in enumerate(self._first):
            ids[:, place], owners[:, place] = token, NOBODY
        return ids, inside.long(), owners


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
