"""The discourse-aware sentence encoder: word vectors, a bidirectional GRU and the mean over positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ensue.backends.discourse.words import VOCABULARY, Vocabulary, load_vocabulary
from ensue.backends.hf.loading import WEIGHTS, ModelFolder, save_folder, state_of
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.records import file_digest
from ensue.scoring.finite import check_rows


@dataclass(frozen=True)
class EncoderShape:
    """The encoder's sizes: `dimension` is that of the GRU in each direction, so vectors are twice as wide."""

    vocabulary: int
    embedding: int = 300
    dimension: int = 300

    @property
    def width(self) -> int:
        return 2 * self.dimension


class DiscourseNetwork(nn.Module):  # type: ignore[misc]
    """A sentence's words to one vector: the mean of the GRU's states, both directions side by side."""

    def __init__(self, shape: EncoderShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.embedding)
        nn.init.uniform_(self.embedding.weight, -((3 / shape.embedding) ** 0.5), (3 / shape.embedding) ** 0.5)
        self.gru = nn.GRU(shape.embedding, shape.dimension, bidirectional=True, batch_first=True)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Return vectors of sentences: `ids` is sentences × words, padded with anything; `lengths` stays on the CPU.

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
    """Return rows of numbers as one table, padded with 0, and their lengths."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    table = np.zeros((len(rows), int(lengths.max())), dtype=np.int64)
    table[np.arange(table.shape[1]) < lengths[:, None]] = np.concatenate(
        [np.asarray(r, np.int64) for r in rows]
    )
    return torch.from_numpy(table), torch.from_numpy(lengths)


ARCHITECTURE = "DiscourseEncoder"
_BATCH_WORDS = {"cpu": 8192, "cuda": 131_072}


class DiscourseModel:
    """A BiGRU sentence encoder with its vocabulary."""

    def __init__(self, network: DiscourseNetwork, vocabulary: Vocabulary, card: ModelCard) -> None:
        self.network, self.vocabulary, self.card = network, vocabulary, card
        self.device = network.embedding.weight.device

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the mean state of each text, in order; a text without a word is read as one unknown word."""
        if layers is not None:
            raise EnsueError(f"{self.card.name} has one vector a text and no layers to choose from.")
        if pooling not in (None, "mean"):
            raise EnsueError(
                f"{self.card.name} takes the mean over positions; there is no pooling {pooling!r}."
            )
        rows = [self.vocabulary.encode(text) or [0] for text in texts]
        out = np.zeros((len(texts), self.network.shape.width), dtype=np.float32)
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        budget = _BATCH_WORDS.get(self.device.type, 8192)
        while order:
            count = max(budget // len(rows[order[-1]]), 1)
            chosen, order = order[-count:], order[:-count]
            ids, lengths = padded([rows[place] for place in chosen])
            with torch.inference_mode():
                out[chosen] = self.network(ids.to(self.device), lengths).float().cpu().numpy()
            check_rows(list(out[chosen]), [texts[place] for place in chosen], self.card)
        return out


def load_discourse(folder: ModelFolder) -> DiscourseModel:
    """Load the encoder saved in a folder."""
    folder.check()
    vocabulary = load_vocabulary(folder.path)
    with folder.loading("a sentence encoder"):
        network = DiscourseNetwork(EncoderShape(**folder.config["shape"]))
        network.load_state_dict(load_file(folder.path / WEIGHTS))
    if len(vocabulary) != network.shape.vocabulary:
        raise EnsueError(
            f"{folder.path / VOCABULARY} has {len(vocabulary)} words where config.json says "
            f"{network.shape.vocabulary}."
        )
    identity = folder.identity(file_digest(folder.path / VOCABULARY))
    return DiscourseModel(folder.placed(network), vocabulary, folder.card("discourse-encoder", identity))


def save_discourse(folder: Path, network: Any, vocabulary: Vocabulary) -> None:
    """Save an encoder as a model folder: one file of weights, a configuration, the words."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.save(folder)
    config = {"architectures": [ARCHITECTURE], "shape": asdict(network.shape)}
    save_folder(folder, config, state_of(network))
