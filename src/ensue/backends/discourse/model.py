"""A trained discourse-aware sentence encoder as a model folder: loading, saving, and encoding texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.atomic import make_readable
from ensue.backends.discourse.words import VOCABULARY, Vocabulary, load_vocabulary
from ensue.backends.hf.loading import (
    Options,
    check_folder,
    need_torch,
    pick_device,
    pick_dtype,
    weights_fingerprint,
)
from ensue.errors import EnsueError
from ensue.models.card import ModelCard, read_card_facts
from ensue.scoring.finite import check_rows

ARCHITECTURE = "DiscourseEncoder"
WEIGHTS = "model.safetensors"
_BATCH_WORDS = {"cpu": 8192, "cuda": 131_072}


class DiscourseModel:
    """A BiGRU sentence encoder with its vocabulary."""

    def __init__(self, network: Any, vocabulary: Vocabulary, card: ModelCard, device: Any) -> None:
        self.network, self.vocabulary, self.card, self.device = network, vocabulary, card, device

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        """The mean state of each text, in order; a text without a word is read as one unknown word."""
        import torch

        from ensue.backends.discourse.network import padded

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


def load_discourse(folder: Path, name: str, config: dict[str, Any], options: Options) -> DiscourseModel:
    """The encoder saved in a folder."""
    need_torch(f"Loading {name}")
    from safetensors.torch import load_file

    from ensue.backends.discourse.network import DiscourseNetwork, EncoderShape

    check_folder(folder, options)
    vocabulary = load_vocabulary(folder)
    try:
        network = DiscourseNetwork(EncoderShape(**config["shape"]))
        network.load_state_dict(load_file(folder / WEIGHTS))
    except Exception as error:  # a broken folder raises types of several libraries
        reason = " ".join(str(error).split())[:200]
        raise EnsueError(
            f"{name} is no sentence encoder that can be loaded ({type(error).__name__}): {reason}"
        ) from error
    if len(vocabulary) != network.shape.vocabulary:
        raise EnsueError(
            f"{folder / VOCABULARY} has {len(vocabulary)} words where config.json says {network.shape.vocabulary}."
        )
    device = pick_device(options.device)
    network = network.to(pick_dtype(options.dtype)).eval().requires_grad_(False).to(device)
    facts = read_card_facts(folder)
    card = ModelCard(
        name=name,
        kind="discourse-encoder",
        source=str(facts.get("source", folder)),
        identity={
            "weights": weights_fingerprint(folder),
            "tokenizer": hashlib.sha256((folder / VOCABULARY).read_bytes()).hexdigest(),
            "dtype": options.dtype,
            "revision": "-",
        },
        licence=str(facts.get("licence", "unknown")),
        training=str(facts.get("training", "")),
    )
    return DiscourseModel(network, vocabulary, card, device)


def save_discourse(folder: Path, network: Any, vocabulary: Vocabulary) -> None:
    """Save an encoder as a model folder: one file of weights, a configuration, the words."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary.save(folder)
    config = {"architectures": [ARCHITECTURE], "shape": network.shape.as_dict()}
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", "utf-8")
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    temporary = folder / f".{WEIGHTS}.part"
    save_file(weights, temporary)
    temporary.replace(folder / WEIGHTS)
    make_readable(folder)
