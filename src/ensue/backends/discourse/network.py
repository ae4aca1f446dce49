"""The discourse-aware sentence encoder's network: word vectors, a bidirectional GRU, the mean over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class EncoderShape:
    """The encoder's sizes: `dimension` is that of the GRU in each direction, so vectors are twice as wide."""

    vocabulary: int
    embedding: int = 300
    dimension: int = 300

    @property
    def width(self) -> int:
        return 2 * self.dimension

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class DiscourseNetwork(nn.Module):  # type: ignore[misc]
    """A sentence's words to one vector: the mean of the GRU's states, both directions side by side."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding)
        nn.init.uniform_(self.embedding.weight, -((3 / shape.embedding) ** 0.5), (3 / shape.embedding) ** 0.5)
        self.gru = nn.GRU(shape.embedding, shape.dimension, bidirectional=True, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Vectors of sentences: `ids` is sentences × words, padded with anything; `lengths` stays on the CPU.

        The GRU runs in the weights' own precision even where the rest is mixed: half precision gains it nothing
        at this size and loses digits at every step.
        """
        with torch.autocast(ids.device.type, enabled=False):
            packed = nn.utils.rnn.pack_padded_sequence(
                self.embedding(ids), lengths, batch_first=True, enforce_sorted=False
            )
            states, _ = nn.utils.rnn.pad_packed_sequence(self.gru(packed)[0], batch_first=True)
            # Positions after a sentence's end come back as zeros.
            counts = lengths.to(ids.device, non_blocking=True).to(states.dtype)
            mean: Tensor = states.sum(1) / counts[:, None]
            return mean


def padded(rows: Sequence[Sequence[int] | np.ndarray[Any, Any]]) -> tuple[Tensor, Tensor]:
    """Rows of numbers as one table, padded with 0, and their lengths."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    table = np.zeros((len(rows), int(lengths.max())), dtype=np.int64)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(
        [np.asarray(r, np.int64) for r in rows]
    )
    return torch.from_numpy(table), torch.from_numpy(lengths)
