"""Texts end to end in one row, none of which sees another: no padding, whatever their lengths."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from transformers import AttentionInterface

from ensue.scoring.attention import attending_by, takes_varlen
from ensue.scoring.rope import one_for_all
from ensue.scoring.transfers import send

Array = npt.NDArray[Any]
_NAME = "ensue_texts"
# How far states may be from those of a text alone, as a part of their size, and be the same but for rounding.
_TOLERANCE = {torch.float32: 1e-3}
_HALF_TOLERANCE = 0.03
_PROBE = (9, 3, 17, 1, 5)


class TextRow(NamedTuple):
    """Texts end to end on a device: tokens, positions, where each begins and the last ends, and the longest."""

    ids: torch.Tensor
    positions: torch.Tensor
    borders: torch.Tensor
    longest: int

    def padded(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return numbers of all tokens as texts × longest × …, padded on the right, and the mask of what is real."""
        columns = torch.arange(self.longest, device=states.device)
        lengths = self.borders.diff()
        mask = columns < lengths[:, None]
        places = (self.borders[:-1, None] + columns).clamp(max=len(states) - 1)
        return states[places.flatten()].unflatten(0, places.shape), mask


def lay(ids: Array, lengths: Array, device: torch.device, first: int = 0) -> TextRow:
    """Send texts, one after the other in `ids`, to a device; positions of each go up from `first`."""
    borders = np.append(0, np.cumsum(lengths))
    positions = np.arange(len(ids)) - np.repeat(borders[:-1] - first, lengths)
    held = send(np.concatenate([ids, positions, borders]).astype(np.int32), device)
    tokens, where, ends = held.split([len(ids), len(ids), len(borders)])
    return TextRow(tokens.long(), where.long(), ends, int(lengths.max(initial=1)))


class EndToEnd:
    """How a network runs rows of texts: what its trunk is given beside them."""

    def __init__(self, network: Any) -> None:
        self.network, self.trunk = network, network.base_model
        self.first = _first_position(self.trunk)
        accepted = inspect.signature(self.trunk.forward).parameters
        self._more = {"use_cache": False} if "use_cache" in accepted else {}
        # Not looked at, but with four dimensions no other is made.
        self._no_mask = torch.zeros((1, 1, 1, 1), device=network.device, dtype=network.dtype)

    def lay(self, ids: Array, lengths: Array) -> TextRow:
        return lay(ids, lengths, self.network.device, self.first)

    def run(self, row: TextRow, **options: Any) -> Any:
        """Return what the trunk makes of a row, as one text of all its tokens."""
        with torch.inference_mode(), apart(self.network, row):
            return self.trunk(
                input_ids=row.ids[None],
                attention_mask=self._no_mask,
                position_ids=row.positions[None],
                **self._more,
                **options,
            )


def end_to_end(network: Any) -> EndToEnd | None:
    """Return how a network runs texts end to end, where its device and dtype have that and its numbers stay."""
    return _found(network) if takes_varlen(network) else None


def _found(network: Any) -> EndToEnd | None:
    """Find out once whether texts end to end have the states that each has alone."""
    known: tuple[EndToEnd | None] | None = getattr(network, "_ensue_end_to_end", None)
    if known is None:
        known = (probed(network),)
        network._ensue_end_to_end = known
    return known[0]


def probed(network: Any) -> EndToEnd | None:
    """Compare a few texts end to end with each alone; None where the network does not run them so."""
    trunk = network.base_model
    if "position_ids" not in inspect.signature(trunk.forward).parameters or one_for_all(network) != np.inf:
        return None
    generator = np.random.default_rng(0)
    vocabulary = int(network.get_input_embeddings().weight.shape[0])
    # Special tokens come first in most vocabularies.
    ids = generator.integers(vocabulary // 2, vocabulary, sum(_PROBE))
    way = EndToEnd(network)
    try:
        row = way.lay(ids, np.asarray(_PROBE))
        found = way.run(row)[0][0].float()
        with torch.inference_mode():
            texts = row.ids.split(list(_PROBE))
            expected = torch.cat([trunk(input_ids=text[None], **way._more)[0][0] for text in texts]).float()
    except Exception:  # of any model's own code
        return None
    gap = (found - expected).norm() / expected.norm()
    return way if float(gap) <= _TOLERANCE.get(network.dtype, _HALF_TOLERANCE) else None


def _first_position(trunk: Any) -> int:
    """Return the number of a text's first position: RoBERTa counts from its padding id on."""
    table = getattr(getattr(trunk, "embeddings", None), "position_embeddings", None)
    shift = getattr(table, "padding_idx", None)
    return 0 if shift is None else int(shift) + 1


_ROW: ContextVar[TextRow] = ContextVar("row")


@contextmanager
def apart(model: Any, row: TextRow) -> Iterator[None]:
    """Let a model attend within the texts of a row for a while."""
    token = _ROW.set(row)
    try:
        with attending_by(_NAME, model):
            yield
    finally:
        _ROW.reset(token)


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attend within each text: to all of it, or left to right as the module says."""
    if any(more.get(name) is not None for name in ("s_aux", "sliding_window", "softcap", "position_bias")):
        raise NotImplementedError("attention with sinks, windows, caps and biases is not run end to end")
    row = _ROW.get()
    causal = more.get("is_causal")
    causal = bool(getattr(module, "is_causal", False) if causal is None else causal)
    if query.device.type != "cuda":
        return _one_by_one(query, key, value, row, scaling, causal), None
    attend, grouped = _varlen()
    window = (-1, 0) if causal else (-1, -1)
    rows = [one[0].transpose(0, 1) for one in (query, key, value)]
    ends, longest = row.borders, row.longest
    return attend(*rows, ends, ends, longest, longest, scale=scaling, window_size=window, **grouped)[
        None
    ], None


def _one_by_one(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    row: TextRow,
    scaling: float | None,
    causal: bool,
) -> torch.Tensor:
    """Do the same one text after another, which says what it is and runs anywhere."""
    attend = torch.nn.functional.scaled_dot_product_attention
    grouped = query.shape[1] != key.shape[1]
    texts = zip(*(one.split(row.borders.diff().tolist(), 2) for one in (query, key, value)), strict=True)
    found = [
        attend(*text, is_causal=causal, scale=scaling, enable_gqa=grouped)
        for text in texts
        if text[0].shape[2]
    ]
    return torch.cat(found, 2).transpose(1, 2)


@cache
def _varlen() -> tuple[Any, dict[str, bool]]:
    """Return torch's attention over texts of different lengths; older ones take fewer keys without being told."""
    from torch.nn.attention.varlen import varlen_attn

    told = "enable_gqa" in inspect.signature(varlen_attn).parameters
    return varlen_attn, {"enable_gqa": True} if told else {}


AttentionInterface.register(_NAME, _attend)
