"""The vector of every token of a text, from any layer of a Hugging Face model, special tokens left out."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError
from ensue.models.hf import Loaded
from ensue.models.hf_encoder import _BATCH_TOKENS, _batches, _pad, layer_count


def encode_tokens(
    loaded: Loaded, texts: Sequence[str], layer: int | None = None
) -> list[npt.NDArray[np.float32]]:
    """Of each text an array tokens × width, in order; texts longer than the model takes are cut."""
    import torch

    network, tokenizer = loaded.network, loaded.tokenizer
    depth = layer_count(network)
    if layer is not None and not -depth - 1 <= layer <= depth:
        raise EnsueError(f"{loaded.card.name} has layers 0 (the embedding) to {depth}, and no layer {layer}.")
    if not texts:
        return []
    ids, special = _tokenised(loaded, texts)
    trunk = network.base_model
    options: dict[str, Any] = {"output_hidden_states": layer is not None}
    if "use_cache" in inspect.signature(trunk.forward).parameters:
        options["use_cache"] = False
    out: list[npt.NDArray[np.float32]] = [np.zeros((0, int(network.config.hidden_size)), np.float32)] * len(
        texts
    )
    for chosen in _batches([len(row) for row in ids], _BATCH_TOKENS.get(network.device.type, 1024)):
        if not ids[chosen[0]]:  # the longest of its batch
            continue
        batch, mask = _pad([ids[i] for i in chosen], tokenizer.pad_token_id or 0)
        with torch.inference_mode():
            result = trunk(
                input_ids=batch.to(network.device),
                attention_mask=None if mask is None else mask.to(network.device),
                **options,
            )
            states = (result[0] if layer is None else result.hidden_states[layer]).float().cpu().numpy()
        for row, i in zip(states, chosen, strict=True):
            # A copy, so that the padding of the batch is not kept with it.
            out[i] = row[: len(ids[i])][~np.asarray(special[i], dtype=bool)].copy()
    return out


def token_ids(loaded: Loaded, texts: Sequence[str]) -> list[list[int]]:
    """The tokens that `encode_tokens` gives a vector each, as numbers of the tokenizer's vocabulary."""
    if not texts:
        return []
    ids, special = _tokenised(loaded, texts)
    return [
        [token for token, is_special in zip(row, marks, strict=True) if not is_special]
        for row, marks in zip(ids, special, strict=True)
    ]


def _tokenised(loaded: Loaded, texts: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
    """Token ids of each text, cut at the model's length, and which of them the tokenizer itself put there."""
    limit = loaded.card.max_length
    found = loaded.tokenizer(
        list(texts),
        truncation=limit is not None,
        max_length=limit,
        return_attention_mask=False,
        return_token_type_ids=False,
        return_special_tokens_mask=True,
        verbose=False,
    )
    return cast(list[list[int]], found["input_ids"]), cast(list[list[int]], found["special_tokens_mask"])
