"""Models that rate how coherent a text is: encoders with one output that learned to tell texts from shuffled ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ensue.atomic import make_readable, replacing
from ensue.backends.hf.adapter import AdapterShape, adapted_identity, open_adapter, save_adapter
from ensue.backends.hf.encoder import POOLINGS, VectorModel
from ensue.backends.hf.loading import Loaded, ModelFolder, load, write_config
from ensue.models.card import ModelCard

ARCHITECTURE = "CoherenceRater"
HEAD = "head.safetensors"


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


class RaterNetwork(nn.Module):  # type: ignore[misc]
    """An encoder and one output; the names of its weights are those of the network that is trained."""

    def __init__(self, trunk: Any) -> None:
        super().__init__()
        self.trunk = trunk.requires_grad_(False)
        self.classifier = nn.Linear(int(trunk.config.hidden_size), 1)


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

    def count_cut(self, texts: Sequence[Sequence[str]]) -> int:
        """Count the texts that are longer than the model takes."""
        return self._vectors.count_cut(self._joined(texts))

    def _joined(self, texts: Sequence[Sequence[str]]) -> list[str]:
        return [self.reading.joiner.join(sentences) for sentences in texts]


def load_rater(folder: ModelFolder) -> CoherenceRater:
    """Load a rater that was saved whole, or as an adapter on the model it was trained from."""
    with folder.loading("coherence rater"):
        reading = RaterReading(**folder.config["rater"])
    if "base" in folder.config:
        loaded, head = _adapted(folder)
    else:
        loaded = load(folder, "AutoModel", "rater")
        with folder.loading("coherence rater"):
            head = load_file(folder.path / HEAD)
    identity = {**loaded.card.identity, "reading": json.dumps(asdict(reading), sort_keys=True)}
    # Its training shuffled texts, whatever a card leaves out.
    card = replace(
        loaded.card, identity=identity, max_length=reading.max_length, trained_on_shuffled_text=True
    )
    return CoherenceRater(replace(loaded, card=card), head, reading)


def _adapted(folder: ModelFolder) -> tuple[Loaded, dict[str, Tensor]]:
    base, network = open_adapter(
        folder,
        "coherence rater",
        lambda base: RaterNetwork(base.network.base_model),
        lambda network: network.trunk,
    )
    card = folder.card("rater", adapted_identity(folder, base), licence=base.card.licence)
    head = {name: value.detach().clone() for name, value in network.classifier.named_parameters()}
    return Loaded(folder.placed(network.trunk), base.tokenizer, card, folder.options), head


def save_rater(folder: Path, network: Any, tokenizer: Any, reading: RaterReading) -> None:
    """Save a rater whose encoder was trained whole, as a folder that needs nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    network.trunk.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    head = {name: value.detach().float().cpu() for name, value in network.classifier.named_parameters()}
    with replacing(folder / HEAD) as part:
        save_file(head, part)
    make_readable(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    write_config(folder, {**config, "architectures": [ARCHITECTURE], "rater": asdict(reading)})


def save_adapted_rater(
    folder: Path, network: Any, reading: RaterReading, *, base: str, fingerprint: str, shape: AdapterShape
) -> None:
    """Save a rater as an adapter and a head, which need the model they were trained on."""
    save_adapter(
        folder,
        network,
        architecture=ARCHITECTURE,
        base=base,
        fingerprint=fingerprint,
        shape=shape,
        more={"rater": asdict(reading)},
    )
