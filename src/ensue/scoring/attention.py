"""The attention of packed rows: a tree's mask, or the borders of texts laid end to end, says what a token sees."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from transformers import AttentionInterface

from ensue.scoring.network import Network


@cache
def _varlen() -> Any | None:
    """Return torch's attention over texts of different lengths, where this torch has it."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn if "window_size" in inspect.signature(varlen_attn).parameters else None


def takes_varlen(network: Network) -> bool:
    """Return whether a model may run texts end to end: on CUDA, in half precision, with heads of up to 256."""
    half = network.dtype in (torch.bfloat16, torch.float16)
    return network.device.type == "cuda" and half and _varlen() is not None


def _attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: Any,
    scaling: float | None = None,
    softcap: float | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attend as a row says: by the mask of a tree, or by the borders of texts."""
    if more.get("s_aux") is not None:
        raise NotImplementedError("attention sinks are not run in packed rows")
    window = more.get("sliding_window")
    if isinstance(attention_mask, BlockMask):
        if window not in more.get("row_windows", (None,)):
            raise NotImplementedError("the masks of this row do not hold this layer's window")
        cap = None if softcap is None else (lambda score, *_: softcap * torch.tanh(score / softcap))
        grouped = query.shape[1] != key.shape[1]
        out = flex_attention(
            *(query, key, value, cap, attention_mask, scaling, grouped), kernel_options=_kernel(query)
        )
        return out.transpose(1, 2), None
    if softcap is not None:
        raise NotImplementedError("texts end to end take no soft cap")
    attend = _varlen()
    assert attend is not None  # asked by `takes_varlen`
    borders, longest = more["cu_seq_lens_q"], more["max_length_q"]
    # Older versions take fewer heads of keys without being told.
    grouped = {"enable_gqa": True} if "enable_gqa" in inspect.signature(attend).parameters else {}
    rows = [one[0].transpose(0, 1) for one in (query, key, value)]
    back = -1 if window is None else window - 1
    out = attend(*rows, borders, borders, longest, longest, scale=scaling, window_size=(back, 0), **grouped)
    return out[None], None


def _kernel(query: torch.Tensor) -> dict[str, Any] | None:
    """Return how FlexAttention's kernel is laid out: the best of several on an H200.

    Rows are not "guaranteed safe" in its sense: the first block that a token looks at may hold nothing it sees.
    """
    if query.device.type != "cuda":
        return None
    layout = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2 if query.shape[-1] <= 64 else 3}
    if query.dtype == torch.float32 or query.shape[-1] > 128:  # twice as many bytes a tile
        layout |= {"BLOCK_M": 32, "BLOCK_N": 32, "num_stages": 2}
    return layout


_NAME = "ensue_packed"
AttentionInterface.register(_NAME, _attend)


def attention(model: Any) -> AbstractContextManager[None]:
    """Let a model attend by `_attend` for a while."""
    return attending_by(_NAME, model)


@contextmanager
def attending_by(name: str, model: Any) -> Iterator[None]:
    """Let a model attend by what is registered under a name for a while."""
    configs = {id(part.config): part.config for part in model.modules() if hasattr(part, "config")}
    before = {key: config._attn_implementation for key, config in configs.items()}
    try:
        for config in configs.values():
            config._attn_implementation = name
        yield
    finally:
        for key, config in configs.items():
            config._attn_implementation = before[key]
