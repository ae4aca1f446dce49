"""A transformers model as a trunk and a head, and the cache from which any row can branch off any path."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers.cache_utils import Cache

from ensue.scoring.kernels import without_cudnn
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
# Settings by which some layer looks back only so far, where a configuration does not list its layers' kinds.
_LOOK_BACK = ("sliding_window", "window_size", "attention_window", "attention_chunk_size", "attention_types")


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
        return not any(getattr(config, name, None) for name in _LOOK_BACK)

    @property
    def windows(self) -> dict[str, int | None] | None:
        """How far the layers of each kind look back, a token's own place counted; None is to the text's beginning.

        None in place of all where some layer sees in yet another way.
        """
        config = self.model.config.get_text_config()
        window = getattr(config, "sliding_window", None)
        layers = getattr(config, "layer_types", None)
        if layers:
            known: dict[str, int | None] = {"full_attention": None, "sliding_attention": window}
            kinds = dict.fromkeys(layers)
            return {kind: known[kind] for kind in kinds} if kinds.keys() <= known.keys() else None
        others = set(_LOOK_BACK) - {"sliding_window"}
        return None if any(getattr(config, name, None) for name in others) else {"": window}

    def hidden(
        self,
        ids: torch.Tensor,
        *,
        attention_mask: Any | None = None,
        position_ids: torch.Tensor | None = None,
        cache: Any | None = None,
        length: int | None = None,
        **more: Any,
    ) -> torch.Tensor:
        """Return the last hidden states, batch × positions × width.

        `length` is that of the sequences the tokens are from, for positions that depend on it; `more` is for the
        attention.
        """
        arguments: dict[str, Any] = {"input_ids": ids, "attention_mask": attention_mask, **more}
        if self.takes_positions:
            arguments["position_ids"] = position_ids
        if self.takes_cache:
            arguments |= {"past_key_values": cache, "use_cache": cache is not None}
        kept = nullcontext() if self.rope is None or length is None else self.rope.held(length)
        with kept, without_cudnn(self.device):
            return self.trunk(**arguments)[0] if self.split else self.model(**arguments).logits

    def lengths(self, lengths: Sequence[int]) -> list[int | None]:
        """Return for each sequence's length one that stands for all it may be run with; None where all may."""
        if self.rope is None:
            return [None] * len(lengths)
        return [self.rope.length_for(length) for length in lengths]

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Apply the head to rows of hidden states (rows × width), in float32."""
        return self._head(hidden).float()

    def _head(self, hidden: torch.Tensor) -> torch.Tensor:
        if not self.split:
            return hidden
        original = self.trunk.forward
        self.trunk.forward = lambda *args, **kwargs: _TrunkOutput(hidden[None])
        try:
            dummy = torch.zeros((1, 1), dtype=torch.long, device=self.device)
            logits: torch.Tensor = self.model(input_ids=dummy).logits[0]
            return logits
        finally:
            self.trunk.forward = original

    def logprobs(self, hidden: torch.Tensor, targets: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the log-probability of each target from its row of hidden states."""
        found = self.chosen(hidden, torch.from_numpy(targets).to(self.device))
        return found.double().cpu().numpy()  # type: ignore[no-any-return]

    def chosen(self, hidden: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of each target from its row, on the device, a chunk of rows at a time."""
        found = hidden.new_empty(len(targets), dtype=torch.float32)
        for begin in range(0, len(targets), self.chunk):
            rows = slice(begin, begin + self.chunk)
            # One fused pass, in float32; a separate log-sum-exp reads the logits four times.
            table = torch.log_softmax(self._head(hidden[rows]), 1, dtype=torch.float32)
            found[rows] = table.gather(1, targets[rows, None].long())[:, 0]
        return found

    @cached_property
    def plain_head(self) -> torch.nn.Linear | None:
        """The head, where the logits are one linear map of the last states; None where more is done to them."""
        head = self.model.get_output_embeddings()
        if not self.split or type(head) is not torch.nn.Linear:
            return None
        with torch.inference_mode():
            states = torch.randn((4, head.in_features), device=self.device, dtype=self.dtype)
            expected, found = self.logits(states), head(states).float()
        return head if torch.allclose(expected, found, rtol=1e-2, atol=1e-3) else None


Slots = npt.NDArray[np.int64]


class Pool:
    """One row of keys and one of values per cached token and layer; tokens own slots until freed."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._free = list(range(capacity - 1, -1, -1))
        self._keys: dict[int, torch.Tensor] = {}
        self._values: dict[int, torch.Tensor] = {}

    def take(self, count: int) -> Slots:
        """Return slots for so many tokens."""
        taken = self._free[-count:]
        del self._free[-count:]
        return np.asarray(taken[::-1], dtype=np.int64)

    def give_back(self, slots: Slots) -> None:
        self._free.extend(int(s) for s in reversed(slots))

    def store(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Write tokens × heads × width into their slots."""
        if layer not in self._keys:
            self._keys[layer] = keys.new_empty((self.capacity, *keys.shape[1:]))
            self._values[layer] = values.new_empty((self.capacity, *values.shape[1:]))
        self._keys[layer].index_copy_(0, slots, keys)
        self._values[layer].index_copy_(0, slots, values)

    def load(self, layer: int, slots: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return keys and values of rows × tokens slots, as rows × heads × tokens × width."""
        flat = slots.reshape(-1)
        keys = self._keys[layer].index_select(0, flat)
        values = self._values[layer].index_select(0, flat)
        return (
            keys.view(*slots.shape, *keys.shape[1:]).transpose(1, 2),
            values.view(*slots.shape, *values.shape[1:]).transpose(1, 2),
        )


class BranchCache(Cache):  # type: ignore[misc]
    """The cache of one forward pass: every row sees its own past, and chosen new tokens enter the pool.

    `past` holds slots, rows × tokens, left-padded (one row if all share it; None if there is no past).
    `keep` are flat positions (row * new length + position) of the new tokens to store, in slots `keep_slots`.
    """

    def __init__(
        self,
        pool: Pool,
        past: torch.Tensor | None,
        keep: torch.Tensor | None,
        keep_slots: torch.Tensor | None,
    ) -> None:
        super().__init__(layers=[])
        self.pool, self.past, self.keep, self.keep_slots = pool, past, keep, keep_slots
        self.past_length = 0 if past is None else past.shape[1]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        rows = key_states.shape[0]
        if self.keep is not None:
            keys = key_states.transpose(1, 2).flatten(0, 1).index_select(0, self.keep)
            values = value_states.transpose(1, 2).flatten(0, 1).index_select(0, self.keep)
            self.pool.store(layer_idx, self.keep_slots, keys, values)
        if self.past is None:
            return key_states, value_states
        past_keys, past_values = self.pool.load(layer_idx, self.past)
        if past_keys.shape[0] != rows:
            past_keys = past_keys.expand(rows, -1, -1, -1)
            past_values = past_values.expand(rows, -1, -1, -1)
        return torch.cat([past_keys, key_states], 2), torch.cat([past_values, value_states], 2)

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.past_length

    def get_query_offset(self, layer_idx: int = 0) -> int:
        return self.past_length

    def get_mask_sizes(self, query_length: Any, layer_idx: int = 0) -> tuple[int, int]:
        # Older transformers pass the positions of the query instead of their number.
        new = query_length if isinstance(query_length, int) else int(query_length.shape[0])
        return self.past_length + new, 0

    @property
    def is_compileable(self) -> bool:
        return False
