"""A Hugging Face text encoder: vectors from any layer, with the pooling its folder states."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.loading import Loaded
from ensue.backends.numbers import check_rows
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import TextTokens

OVER_LAYERS = "cls-average-over-layers"
POOLINGS = ("mean", "cls", "last", OVER_LAYERS)
# On a CPU, larger batches only leave its caches and are slower.
_BATCH_TOKENS = {"cpu": 1024, "cuda": 65_536}
# The part of a batch that may be padding, and the part of the budget below which a batch may have more of it.
_PADDING, _SMALL = 1 / 16, 1 / 8
# How far states may move, as a part of the largest, and be the same but for rounding.
_EQUAL, _NEARLY = 1e-3, 0.1


class EncoderModel:
    """An encoder without a language-modelling head."""

    def __init__(self, loaded: Loaded, folder: Path) -> None:
        limits = [n for n in (loaded.card.max_length, stated_length(folder)) if n]
        self.pooling, self.normalise = stated_pooling(folder)
        length = min(limits, default=None)
        stated = {"pooling": self.pooling + "+normalise" * self.normalise, "length": str(length)}
        card = replace(loaded.card, max_length=length, identity={**loaded.card.identity, **stated})
        self._loaded = replace(loaded, card=card)
        self.network, self.tokenizer = loaded.network, loaded.tokenizer

    @property
    def card(self) -> ModelCard:
        return self._loaded.card

    @property
    def layer_count(self) -> int:
        return layer_count(self.network)

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        normalise = self.normalise and layers is None and pooling is None
        return encode_texts(
            self._loaded, texts, layers=layers, pooling=pooling or self.pooling, normalise=normalise
        )

    def count_cut(self, texts: Sequence[str]) -> int:
        return count_cut(self._loaded, texts)

    def encode_tokens(self, texts: Sequence[str], layer: int | None = None) -> list[npt.NDArray[np.float32]]:
        from ensue.backends.hf.tokens import encode_tokens

        return encode_tokens(self._loaded, texts, layer)

    def text_tokens(self, texts: Sequence[str]) -> list[TextTokens]:
        from ensue.backends.hf.tokens import text_tokens

        return text_tokens(self._loaded, texts)


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


def layer_count(network: Any) -> int:
    """How many layers a network has above its embedding."""
    return int(network.config.num_hidden_layers)


def count_cut(loaded: Loaded, texts: Sequence[str]) -> int:
    """How many texts have more tokens than the model takes, those that its tokenizer adds counted."""
    limit = loaded.card.max_length
    # A token is no less than a byte, so that most texts need not be tokenised to be known to fit.
    long = [text for text in texts if limit is not None and len(text.encode("utf-8", "replace")) > limit // 2]
    if limit is None or not long:
        return 0
    ids = loaded.tokenizer(long, return_attention_mask=False, return_token_type_ids=False, verbose=False)
    return sum(len(row) > limit for row in ids["input_ids"])


def encode_texts(
    loaded: Loaded, texts: Sequence[str], *, layers: Sequence[int] | None, pooling: str, normalise: bool
) -> npt.NDArray[np.float32]:
    """Vectors of the texts, in order: batches of like length, cut at the model's length, all layers in one pass.

    `cls-average-over-layers` is the mean of the first token's states after each layer, the embedding left out,
    as Chen et al. (2019) represent a sentence with BERT (the library they used gave no embedding states).
    """
    import torch

    network, tokenizer = loaded.network, loaded.tokenizer
    _check(loaded, layers, pooling)
    shape = (len(texts),) if layers is None else (len(texts), len(layers))
    out = np.zeros((*shape, int(network.config.hidden_size)), dtype=np.float32)
    if not texts:
        return out
    limit = loaded.card.max_length
    ids = tokenizer(
        list(texts),
        truncation=limit is not None,
        max_length=limit,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )["input_ids"]
    trunk = network.base_model
    options: dict[str, Any] = {"output_hidden_states": layers is not None or pooling == OVER_LAYERS}
    if "use_cache" in inspect.signature(trunk.forward).parameters:
        options["use_cache"] = False
    for chosen in batches(network, [len(row) for row in ids]):
        batch, mask = _pad([ids[i] for i in chosen], tokenizer.pad_token_id or 0)
        batch, mask = batch.to(network.device), None if mask is None else mask.to(network.device)
        with torch.inference_mode():
            result = trunk(input_ids=batch, attention_mask=mask, **options)
            if layers is not None:
                states = result.hidden_states
                pooled = torch.stack([_pool(states[layer], mask, pooling) for layer in layers], 1)
            elif pooling == OVER_LAYERS:
                pooled = torch.stack([state[:, 0] for state in result.hidden_states[1:]]).mean(0)
            else:
                pooled = _pool(result[0], mask, pooling)
                pooled = torch.nn.functional.normalize(pooled, dim=-1) if normalise else pooled
        out[chosen] = pooled.float().cpu().numpy()
        check_rows(list(out[chosen]), [texts[i] for i in chosen], loaded.card)
    return out


def _check(loaded: Loaded, layers: Sequence[int] | None, pooling: str) -> None:
    if pooling not in POOLINGS:
        raise EnsueError(f"There is no pooling {pooling!r}; choose one of {', '.join(POOLINGS)}.")
    if layers is None:
        return
    if pooling == OVER_LAYERS:
        raise EnsueError(f"{OVER_LAYERS} takes all layers together, so none can be chosen with it.")
    depth = layer_count(loaded.network)
    if any(not -depth - 1 <= layer <= depth for layer in layers):
        raise EnsueError(f"{loaded.card.name} has layers 0 (the embedding) to {depth}.")


def batches(network: Any, lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which texts are run together; only those of one length where a model would take padding for text, or has
    positions by the longest text of a batch."""
    from ensue.scoring.rope import one_for_all

    budget = _BATCH_TOKENS.get(network.device.type, 1024)
    groups = [list(range(len(lengths)))]
    if len(set(lengths)) > 1 and (max(lengths) > one_for_all(network) or not _heeds_mask(network)):
        groups = [
            [i for i, other in enumerate(lengths) if other == length]
            for length in sorted(set(lengths), reverse=True)
        ]
    for group in groups:
        for chosen in _batches([lengths[i] for i in group], budget):
            yield [group[i] for i in chosen]


def _heeds_mask(network: Any) -> bool:
    """Whether a text's states are the same beside a longer one; found out once a network."""
    import torch

    known: bool | None = getattr(network, "_ensue_heeds_mask", None)
    if known is None:
        trunk, vocabulary = network.base_model, int(network.get_input_embeddings().weight.shape[0])
        ids = (torch.arange(7, 21, device=network.device) * 31 % vocabulary).view(2, 7)
        mask = torch.ones_like(ids)
        mask[1, 3:] = 0
        with torch.inference_mode():
            beside = trunk(input_ids=ids * mask, attention_mask=mask)[0][1, :3].float()
            alone = trunk(input_ids=ids[1:, :3])[0][0].float()
        tolerance = _EQUAL if network.dtype == torch.float32 else _NEARLY
        known = bool((beside - alone).abs().max() <= tolerance * alone.abs().max().clamp(min=1))
        network._ensue_heeds_mask = known
    return known


def _batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Which texts are run together, the longest first: within the budget of tokens, with little padding."""
    chosen: list[int] = []
    width = tokens = 0
    for i in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        room = (len(chosen) + 1) * width
        padding = room - tokens - lengths[i]
        if chosen and (room > budget or (padding > room * _PADDING and room > budget * _SMALL)):
            yield chosen
            chosen, tokens = [], 0
        if not chosen:
            width = max(lengths[i], 1)
        chosen.append(i)
        tokens += lengths[i]
    yield chosen


def _pad(rows: Sequence[list[int]], pad: int) -> tuple[Any, Any]:
    """The rows as one tensor, and a mask where not all are of one length."""
    import torch

    width = max(*map(len, rows), 1)
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    if all(len(row) == width for row in rows):
        return ids, None
    return ids, torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])


def _pool(states: Any, mask: Any, pooling: str) -> Any:
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        return states[:, -1] if mask is None else states[range(len(states)), (mask.sum(1) - 1).clamp(min=0)]
    if mask is None:
        return states.mean(1)
    weights = mask[:, :, None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
