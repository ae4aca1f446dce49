"""A Hugging Face text encoder: vectors from any layer, with the pooling its folder states."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.hf import Loaded

POOLINGS = ("mean", "cls", "last")
_BATCH_TOKENS = {"cpu": 4096, "cuda": 65_536}


class EncoderModel:
    """An encoder without a language-modelling head."""

    def __init__(self, loaded: Loaded, folder: Path) -> None:
        limits = [n for n in (loaded.card.max_length, stated_length(folder)) if n]
        self._loaded = replace(loaded, card=replace(loaded.card, max_length=min(limits, default=None)))
        self.network, self.tokenizer = loaded.network, loaded.tokenizer
        self.pooling, self.normalise = stated_pooling(folder)

    @property
    def card(self) -> ModelCard:
        return self._loaded.card

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        normalise = self.normalise and layers is None and pooling is None
        return encode_texts(
            self._loaded, texts, layers=layers, pooling=pooling or self.pooling, normalise=normalise
        )


def stated_pooling(folder: Path) -> tuple[str, bool]:
    """Pooling and normalising as a sentence-transformers folder states them; mean, unnormalised, otherwise."""
    modules = folder / "modules.json"
    config = folder / "1_Pooling" / "config.json"
    if not modules.is_file() or not config.is_file():
        return "mean", False
    try:
        settings = dict(json.loads(config.read_text("utf-8")))
        kinds = [str(module.get("type", "")) for module in json.loads(modules.read_text("utf-8"))]
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise EnsueError(f"{folder} states its pooling in a form that cannot be read: {error}.") from None
    normalise = any(kind.endswith("Normalize") for kind in kinds)
    if settings.get("pooling_mode_cls_token"):
        return "cls", normalise
    if settings.get("pooling_mode_lasttoken"):
        return "last", normalise
    return "mean", normalise


def stated_length(folder: Path) -> int | None:
    """The length at which a sentence-transformers folder says texts are cut."""
    config = folder / "sentence_bert_config.json"
    if not config.is_file():
        return None
    try:
        value = json.loads(config.read_text("utf-8"))["max_seq_length"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return value if isinstance(value, int) and value > 0 else None


def encode_texts(
    loaded: Loaded, texts: Sequence[str], *, layers: Sequence[int] | None, pooling: str, normalise: bool
) -> npt.NDArray[np.float32]:
    """Vectors of the texts, in order: sorted by length into batches, truncated at the model's length."""
    import torch

    if pooling not in POOLINGS:
        raise EnsueError(f"There is no pooling {pooling!r}; choose one of {', '.join(POOLINGS)}.")
    network, tokenizer = loaded.network, loaded.tokenizer
    depth = int(network.config.num_hidden_layers)
    if layers is not None and any(not -depth - 1 <= layer <= depth for layer in layers):
        raise EnsueError(f"{loaded.card.name} has layers 0 (the embedding) to {depth}.")
    if not texts:
        shape = (0,) if layers is None else (0, len(layers))
        return np.zeros((*shape, int(network.config.hidden_size)), dtype=np.float32)
    limit = loaded.card.max_length
    ids = tokenizer(list(texts), truncation=limit is not None, max_length=limit, verbose=False)["input_ids"]
    order = sorted(range(len(texts)), key=lambda i: len(ids[i]))
    budget = _BATCH_TOKENS.get(network.device.type, 4096)
    out: npt.NDArray[np.float32] = np.zeros(0, dtype=np.float32)
    trunk = network.base_model
    while order:
        width = max(len(ids[order[-1]]), 1)
        count = max(budget // width, 1)
        chosen, order = order[-count:], order[:-count]
        batch, mask = _pad([ids[i] for i in chosen], width, tokenizer.pad_token_id or 0)
        batch, mask = batch.to(network.device), mask.to(network.device)
        with torch.inference_mode():
            result = trunk(input_ids=batch, attention_mask=mask, output_hidden_states=layers is not None)
            if layers is None:
                pooled = _pool(result[0], mask, pooling)
                pooled = torch.nn.functional.normalize(pooled, dim=-1) if normalise else pooled
            else:
                states = result.hidden_states
                pooled = torch.stack([_pool(states[layer], mask, pooling) for layer in layers], 1)
        vectors = pooled.float().cpu().numpy()
        if not out.size:
            out = np.zeros((len(texts), *vectors.shape[1:]), dtype=np.float32)
        out[chosen] = vectors
    return out


def _pad(rows: Sequence[Sequence[int]], width: int, pad: int) -> tuple[Any, Any]:
    import torch

    ids = torch.full((len(rows), width), pad, dtype=torch.long)
    mask = torch.zeros((len(rows), width), dtype=torch.long)
    for row, tokens in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens, dtype=torch.long)
        mask[row, : len(tokens)] = 1
    return ids, mask


def _pool(states: Any, mask: Any, pooling: str) -> Any:
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        return states[range(len(states)), (mask.sum(1) - 1).clamp(min=0)]
    weights = mask[:, :, None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
