"""Models that rate how coherent a text is: encoders with one output that learned to tell texts from shuffled ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from torch import Tensor

from ensue.backends.hf.encoder import POOLINGS, VectorModel
from ensue.backends.hf.headed import Headed
from ensue.backends.hf.loading import Loaded, ModelFolder
from ensue.models.card import ModelCard

RATER = Headed("CoherenceRater", "rater", "a coherence rater")


@dataclass(frozen=True)
class RaterReading:
    """How a rater reads a text: its sentences joined, cut after so many tokens, and pooled into one vector."""

    pooling: str
    max_length: int
    joiner: str = " "

    def __post_init__(self) -> None:
        whole = type(self.max_length) is int and self.max_length > 0
        if self.pooling not in POOLINGS or not whole or not isinstance(self.joiner, str):
            raise ValueError(
                f"pooling {self.pooling!r} of {self.max_length!r} tokens, joined by {self.joiner!r}, "
                "is no way to read a text"
            )


class CoherenceRater:
    """Rates texts by the output of a trained encoder: the logit of a text being in its own order."""

    def __init__(self, loaded: Loaded, head: Mapping[str, Tensor], reading: RaterReading) -> None:
        self._vectors, self.reading = VectorModel(loaded), reading
        self._weight = head["weight"].double().cpu().numpy()[0]
        self._bias = float(head["bias"][0])

    @property
    def card(self) -> ModelCard:
        return self._vectors.card

    @property
    def device_kind(self) -> str:
        return self._vectors.device_kind

    def rate(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """Return the logit of each text, given as its sentences; what is beyond the model's length is not read."""
        vectors = self._vectors.encode(self._joined(texts), pooling=self.reading.pooling)
        return [float(value) for value in vectors.astype(np.float64) @ self._weight + self._bias]

    def together(self, texts: Sequence[Sequence[str]]) -> list[list[int]]:
        """Return which texts are read in one batch."""
        return self._vectors.together(self._joined(texts))

    def count_cut(self, texts: Sequence[Sequence[str]]) -> int:
        """Count the texts that are longer than the model takes."""
        return self._vectors.count_cut(self._joined(texts))

    def _joined(self, texts: Sequence[Sequence[str]]) -> list[str]:
        return [self.reading.joiner.join(sentences) for sentences in texts]


def load_rater(folder: ModelFolder) -> CoherenceRater:
    """Load a rater that was saved whole, or as an adapter on the model it was trained from."""
    with folder.loading("a coherence rater"):
        reading = RaterReading(**folder.config["rater"])
    loaded, head = RATER.load(folder)
    identity = {**loaded.card.identity, "reading": json.dumps(asdict(reading), sort_keys=True)}
    # Its training shuffled texts, whatever a card leaves out.
    card = replace(
        loaded.card, identity=identity, max_length=reading.max_length, trained_on_shuffled_text=True
    )
    return CoherenceRater(replace(loaded, card=card), head, reading)
