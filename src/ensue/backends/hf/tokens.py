"""The vector of every token of a text, special ones too, from any layer of a Hugging Face model."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.encoder import _pad, batches, layer_count
from ensue.backends.hf.loading import Loaded
from ensue.backends.numbers import check_rows
from ensue.errors import EnsueError
from ensue.models.protocols import TextTokens

# To these a word without a space before it is another word, so a text is begun with one.
_SPACE_FIRST = ("Roberta", "GPT2")


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
    ids = [one.ids for one in text_tokens(loaded, texts)]
    trunk = network.base_model
    options: dict[str, Any] = {"output_hidden_states": layer is not None}
    if "use_cache" in inspect.signature(trunk.forward).parameters:
        options["use_cache"] = False
    out: list[npt.NDArray[np.float32]] = [np.zeros((0, int(network.config.hidden_size)), np.float32)] * len(
        texts
    )
    for chosen in batches(network, [len(row) for row in ids]):
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
            out[i] = row[: len(ids[i])].copy()
        check_rows([out[i] for i in chosen], [texts[i] for i in chosen], loaded.card)
    return out


def text_tokens(loaded: Loaded, texts: Sequence[str]) -> list[TextTokens]:
    """The tokens of each text, cut at the model's length; space around a text is no part of it."""
    if not texts:
        return []
    limit = loaded.card.max_length
    before = " " if type(loaded.tokenizer).__name__.startswith(_SPACE_FIRST) else ""
    found = loaded.tokenizer(
        [before + text.strip() if text.strip() else "" for text in texts],
        truncation=limit is not None,
        max_length=limit,
        return_attention_mask=False,
        return_token_type_ids=False,
        return_special_tokens_mask=True,
        verbose=False,
    )
    return [
        TextTokens(list(ids), [bool(mark) for mark in marks])
        for ids, marks in zip(found["input_ids"], found["special_tokens_mask"], strict=True)
    ]
