"""Keys and values kept per token in one pool, from which any row can branch off any path of the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from transformers.cache_utils import Cache

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
