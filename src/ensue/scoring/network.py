"""A transformers model as a trunk (tokens to hidden states) and a head (hidden states to log-probabilities)."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ensue.scoring.rope import length_rope

# Names and numbers as in glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LIMIT = 2**30


@cache
def keep_buffers() -> bool:
    """Tell glibc to reuse memory for buffers below 1 GiB; True where that was possible.

    By default each large tensor is mapped anew and returned when freed, so every batch pays for clearing the
    same pages again: on a virtual machine, matrix products ran an eighth faster without that.
    """
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LIMIT)) and bool(mallopt(_M_TRIM_THRESHOLD, _LIMIT))


# Logits are made for so many entries (rows × vocabulary) at a time: 64 MB in float32, 1 GB on a GPU.
_CPU_ENTRIES = 2**24
_GPU_ENTRIES = 2**28


class _TrunkOutput:
    """Stands for what a trunk returns, so that a model's own forward applies its head to given states."""

    def __init__(self, hidden: torch.Tensor) -> None:
        self.last_hidden_state = hidden

    def __getitem__(self, index: int) -> torch.Tensor | None:
        return self.last_hidden_state if index == 0 else None

    def __getattr__(self, name: str) -> None:
        return None


class Network:
    """Runs a model's trunk and, at chosen positions only, its head.

    The head is the model's own forward with the trunk swapped out, so scaling, soft-capping and transforms
    between trunk and vocabulary stay exactly the model's. Where a model does not divide so (`split` is
    False), its logits stand in for hidden states and the head does nothing.
    """

    def __init__(self, model: Any, *, split: bool = True) -> None:
        self.model = model
        self.split = split
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        self.trunk = model.base_model
        accepted = inspect.signature(self.trunk.forward if split else model.forward).parameters
        self.takes_positions = "position_ids" in accepted
        self.takes_cache = "past_key_values" in accepted
        self.rope = length_rope(model)
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        if self.device.type == "cpu":
            keep_buffers()
        entries = _CPU_ENTRIES if self.device.type == "cpu" else _GPU_ENTRIES
        self.chunk = max(entries // self.vocabulary, 1)

    @property
    def sees_by_mask(self) -> bool:
        """Whether a mask alone says what a token sees: not so where some layer looks back only so far."""
        config = self.model.config.get_text_config()
        layers = getattr(config, "layer_types", None)
        if layers:
            return set(layers) == {"full_attention"}
        return not any(
            getattr(config, name, None)
            for name in (
                "sliding_window",
                "window_size",
                "attention_window",
                "attention_chunk_size",
                "attention_types",
            )
        )

    def hidden(
        self,
        ids: torch.Tensor,
        *,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        cache: Any | None = None,
        length: int | None = None,
    ) -> torch.Tensor:
        """Return the last hidden states, batch × positions × width.

        `length` is that of the sequences the tokens are from, for positions that depend on it.
        """
        arguments: dict[str, Any] = {"input_ids": ids, "attention_mask": attention_mask}
        if self.takes_positions:
            arguments["position_ids"] = position_ids
        if self.takes_cache:
            arguments |= {"past_key_values": cache, "use_cache": cache is not None}
        kept = nullcontext() if self.rope is None or length is None else self.rope.held(length)
        with kept:
            return self.trunk(**arguments)[0] if self.split else self.model(**arguments).logits

    def lengths(self, lengths: Sequence[int]) -> list[int | None]:
        """Return for each sequence's length one that stands for all it may be run with; None where all may."""
        if self.rope is None:
            return [None] * len(lengths)
        return [self.rope.length_for(length) for length in lengths]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the head to rows of hidden states (rows × width), in float32."""
        if not self.split:
            return hidden.float()
        original = self.trunk.forward
        self.trunk.forward = lambda *args, **kwargs: _TrunkOutput(hidden[None])
        try:
            dummy = torch.zeros((1, 1), dtype=torch.long, device=self.device)
            return self.model(input_ids=dummy).logits[0].float()
        finally:
            self.trunk.forward = original

    def logprobs(self, hidden: torch.Tensor, targets: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the log-probability of each target from its row of hidden states, a chunk of rows at a time."""
        wanted = torch.from_numpy(targets).to(self.device)
        out = torch.empty(len(targets), dtype=torch.float64)
        for begin in range(0, len(targets), self.chunk):
            logits = self.logits(hidden[begin : begin + self.chunk])
            # One fused pass; a separate log-sum-exp reads the logits four times.
            table = torch.log_softmax(logits, 1)
            chosen = table.gather(1, wanted[begin : begin + self.chunk, None])[:, 0]
            out[begin : begin + self.chunk] = chosen.double().cpu()
        found: npt.NDArray[np.float64] = out.numpy()
        return found
