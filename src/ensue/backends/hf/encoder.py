"""Vectors from Hugging Face models: of texts or of their tokens, from any layer, pooled as a folder states."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.backends.hf.batching import States, batches, pad
from ensue.backends.hf.loading import Loaded, ModelFolder, load
from ensue.backends.hf.stream import QuickTokenizer
from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.protocols import TextTokens
from ensue.scoring.finite import check_rows

OVER_LAYERS = "cls-average-over-layers"
POOLINGS = ("mean", "cls", "last", OVER_LAYERS)
# Texts that a worker is given at once to read on its GPU.
_FLOW = 4096
# To these a word without a space before it is another word, so a text is begun with one.
_SPACE_FIRST = ("Roberta", "GPT2")


class VectorModel:
    """A Hugging Face model in memory that gives vectors of texts and of their tokens."""

    # What a folder without word on pooling gets.
    pooling: str = "mean"
    normalise: bool = False

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self.network, self.tokenizer = loaded.network, loaded.tokenizer

    @property
    def card(self) -> ModelCard:
        return self._loaded.card

    @property
    def layer_count(self) -> int:
        return int(self.network.config.num_hidden_layers)

    @property
    def device_kind(self) -> str:
        return str(self.network.device.type)

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        """Return vectors of the texts, in order, cut at the model's length; several layers take one pass.

        `cls-average-over-layers` is the mean of the first token's states after each layer, the embedding left out,
        as Chen et al. (2019) represent a sentence with BERT (the library they used gave no embedding states).
        """
        normalise = self.normalise and layers is None and pooling is None
        pooling = pooling or self.pooling
        self._check(layers, pooling)
        shape = (len(texts),) if layers is None else (len(texts), len(layers))
        out = np.zeros((*shape, int(self.network.config.hidden_size)), dtype=np.float32)
        pooled = partial(_pooled, layers=layers, pooling=pooling, normalise=normalise)
        all_layers = layers is not None or pooling == OVER_LAYERS
        run = self._in_turn if self.device_kind == "cpu" else self._streamed
        for chosen, vectors in run(texts, pooled, all_layers):
            out[chosen] = vectors
            if not np.isfinite(vectors).all():
                check_rows(list(vectors), [texts[i] for i in chosen], self.card)
        return out

    def together(self, texts: Sequence[str]) -> list[list[int]]:
        """Return which texts are read in one batch; on a GPU, where they flow, so many at a time."""
        if self.device_kind != "cpu":
            return [list(range(i, min(i + _FLOW, len(texts)))) for i in range(0, len(texts), _FLOW)]
        rows = self._tokenised(texts)["input_ids"] if texts else []
        return list(batches(self.network, [len(row) for row in rows])) if rows else []

    def _in_turn(
        self, texts: Sequence[str], pooled: Callable[[Any], Any], all_layers: bool
    ) -> Iterator[tuple[Any, npt.NDArray[np.float32]]]:
        """Run texts batch after batch."""
        import torch

        ids = self._tokenised(texts)["input_ids"] if texts else []
        for chosen, result, mask in self._run(ids, all_layers=all_layers):
            with torch.inference_mode():
                found = pooled(States(result[0], result.hidden_states if all_layers else None, mask))
            yield chosen, found.float().cpu().numpy()

    def _streamed(
        self, texts: Sequence[str], pooled: Callable[[Any], Any], all_layers: bool
    ) -> Iterator[tuple[Any, npt.NDArray[np.float32]]]:
        """Run texts on a GPU: tokenised meanwhile, end to end where that is right, and nobody waits."""
        from ensue.backends.hf.stream import EndToEndRun, PaddedRun, stream
        from ensue.scoring.texts import end_to_end

        run: Any = PaddedRun(self.network, self.tokenizer.pad_token_id or 0, all_layers=all_layers)
        way = end_to_end(self.network)
        if way is not None:
            run = EndToEndRun(way, run, all_layers=all_layers)
        return stream(run, self._quick, texts, pooled)

    @cached_property
    def _quick(self) -> QuickTokenizer:
        def plain(texts: Sequence[str]) -> list[list[int]]:
            found: list[list[int]] = self._tokenised(texts)["input_ids"]
            return found

        return QuickTokenizer(self.tokenizer, self.card.max_length, plain)

    def encode_tokens(self, texts: Sequence[str], layer: int | None = None) -> list[npt.NDArray[np.float32]]:
        """Return an array tokens × width of each text, in order, special tokens too."""
        self._check_layers([] if layer is None else [layer])
        ids = [one.ids for one in self.text_tokens(texts)]
        out: list[npt.NDArray[np.float32]] = [np.zeros((0, 0), np.float32)] * len(texts)
        for chosen, result, _ in self._run(ids, all_layers=layer is not None):
            states = (result[0] if layer is None else result.hidden_states[layer]).float().cpu().numpy()
            for row, i in zip(states, chosen, strict=True):
                # A copy, so that the padding of the batch is not kept with it.
                out[i] = row[: len(ids[i])].copy()
            check_rows([out[i] for i in chosen], [texts[i] for i in chosen], self.card)
        return out

    def tokens_together(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the texts whose tokens are read in one batch."""
        lengths = [len(one.ids) for one in self.text_tokens(texts)]
        return list(batches(self.network, lengths)) if lengths else []

    def text_tokens(self, texts: Sequence[str]) -> list[TextTokens]:
        """Return the tokens of each text, cut at the model's length; space around a text is no part of it."""
        if not texts:
            return []
        before = " " if type(self.tokenizer).__name__.startswith(_SPACE_FIRST) else ""
        stripped = [before + text.strip() if text.strip() else "" for text in texts]
        found = self._tokenised(stripped, return_special_tokens_mask=True)
        return [
            TextTokens(list(ids), [bool(mark) for mark in marks])
            for ids, marks in zip(found["input_ids"], found["special_tokens_mask"], strict=True)
        ]

    def count_cut(self, texts: Sequence[str]) -> int:
        """Count the texts with more tokens than the model takes, those that its tokenizer adds included."""
        limit = self.card.max_length
        if limit is None:
            return 0
        # A token is no less than a byte, so that most texts need not be tokenised to be known to fit.
        long = [text for text in texts if len(text.encode("utf-8", "replace")) > limit // 2]
        return sum(len(row) > limit for row in self._tokenised(long, cut=False)["input_ids"]) if long else 0

    def _tokenised(self, texts: Sequence[str], *, cut: bool = True, **more: bool) -> Any:
        """Tokenise texts with the model's special tokens, cut at its length or not."""
        limit = self.card.max_length if cut else None
        return self.tokenizer(
            list(texts),
            truncation=limit is not None,
            max_length=limit,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
            **more,
        )

    def _run(self, rows: Sequence[list[int]], *, all_layers: bool) -> Iterator[tuple[list[int], Any, Any]]:
        """Run rows of tokens in batches of like length: which rows, what the trunk makes of them, and their mask."""
        import torch

        device, trunk = self.network.device, self.network.base_model
        options: dict[str, Any] = {"output_hidden_states": all_layers}
        if "use_cache" in inspect.signature(trunk.forward).parameters:
            options["use_cache"] = False
        for chosen in batches(self.network, [len(row) for row in rows]) if rows else ():
            ids, mask = pad([rows[i] for i in chosen], self.tokenizer.pad_token_id or 0)
            mask = None if mask.all() else mask.to(device)
            with torch.inference_mode():
                result = trunk(input_ids=ids.to(device), attention_mask=mask, **options)
            yield chosen, result, mask

    def _check(self, layers: Sequence[int] | None, pooling: str) -> None:
        if pooling not in POOLINGS:
            raise EnsueError(f"There is no pooling {pooling!r}; choose one of {', '.join(POOLINGS)}.")
        if layers is None:
            return
        if pooling == OVER_LAYERS:
            raise EnsueError(f"{OVER_LAYERS} takes all layers together, so none can be chosen with it.")
        self._check_layers(layers)

    def _check_layers(self, layers: Sequence[int]) -> None:
        depth = self.layer_count
        if odd := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
            raise EnsueError(
                f"{self.card.name} has layers 0 (the embedding) to {depth}, and no layer {odd[0]}."
            )


class EncoderModel(VectorModel):
    """An encoder without a language-modelling head, with the pooling and length its folder states."""

    def __init__(self, loaded: Loaded, folder: Path) -> None:
        limits = [n for n in (loaded.card.max_length, stated_length(folder)) if n]
        self.pooling, self.normalise = stated_pooling(folder)
        length = min(limits, default=None)
        stated = {"pooling": self.pooling + "+normalise" * self.normalise, "length": str(length)}
        card = replace(loaded.card, max_length=length, identity={**loaded.card.identity, **stated})
        super().__init__(replace(loaded, card=card))


def load_encoder(folder: ModelFolder) -> EncoderModel:
    """Load a folder as an encoder."""
    return EncoderModel(load(folder, "AutoModel", "encoder"), folder.path)


def stated_pooling(folder: Path) -> tuple[str, bool]:
    """Return pooling and normalising as a sentence-transformers folder states them; mean, unnormalised, otherwise."""
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
    """Return the length at which a sentence-transformers folder says texts are cut."""
    config = folder / "sentence_bert_config.json"
    if not config.is_file():
        return None
    try:
        value = json.loads(config.read_text("utf-8"))["max_seq_length"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return value if isinstance(value, int) and value > 0 else None


def _pooled(states: States, layers: Sequence[int] | None, pooling: str, normalise: bool) -> Any:
    """Return a vector of each text, or one of each asked layer."""
    import torch

    if layers is not None:
        assert states.layers is not None, "all layers were asked for"
        return torch.stack([_pool(states.layers[layer], states.mask, pooling) for layer in layers], 1)
    if pooling == OVER_LAYERS:
        assert states.layers is not None, "all layers were asked for"
        return torch.stack([state[:, 0] for state in states.layers[1:]]).mean(0)
    pooled = _pool(states.last, states.mask, pooling)
    return torch.nn.functional.normalize(pooled, dim=-1) if normalise else pooled


def _pool(states: Any, mask: Any, pooling: str) -> Any:
    if pooling == "cls":
        return states[:, 0]
    if pooling == "last":
        if mask is None:
            return states[:, -1]
        last = (mask.sum(1) - 1).clamp(min=0)
        return states.take_along_dim(last[:, None, None], 1)[:, 0]
    # Half precision neither adds up many states well nor counts beyond 256.
    states = states.float()
    if mask is None:
        return states.mean(1)
    weights = mask[:, :, None].to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
