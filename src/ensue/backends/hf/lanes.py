"""Keys and values of many prompts, a lane each: every step is the same work on the same memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from ensue.backends.hf.beam import Ids, TokenPrompt
from ensue.scoring.attention import attending_by
from ensue.scoring.network import BranchCache, Network, Pool

_NAME = "ensue_lanes"
# Kernels that take a mask want rows of such a multiple.
_MULTIPLE = 16


class Lanes:
    """A store of `lanes` × (`width` + `beams` × `max_tokens`) tokens, and the network that fills and reads it.

    A lane holds a prompt once, for all its hypotheses, and then each token that a hypothesis was lengthened by, at
    `slots`. Nothing is moved when hypotheses change places: a mask says which tokens each has come through.
    """

    def __init__(self, network: Network, *, lanes: int, beams: int, max_tokens: int, width: int) -> None:
        self.network, self.beams = network, beams
        self.size = -(-(width + beams * max_tokens) // _MULTIPLE) * _MULTIPLE
        self.width = self.size - beams * max_tokens
        self.count = lanes
        self._keys: dict[int, Tensor] = {}
        self._values: dict[int, Tensor] = {}
        config = network.model.config.get_text_config()
        heads = getattr(config, "num_attention_heads", 1)
        self._groups = heads // (getattr(config, "num_key_value_heads", None) or heads)

    @property
    def device(self) -> torch.device:
        return self.network.device

    def begin(self, prompts: Sequence[TokenPrompt], lanes: Tensor, room: int) -> Tensor:
        """Put prompts into lanes, `room` tokens at a time, and return the logits of what follows each.

        What several prompts share is run once.
        """
        states: list[Tensor | None] = [None] * len(prompts)
        whole = [prompt.shared or prompt.own for prompt in prompts]
        for runs in _together(list(dict.fromkeys(whole)), room):
            rows = {run: row for row, run in enumerate(runs)}
            here = [place for place, run in enumerate(whole) if run in rows]
            ids, _ = self._padded(runs)
            row = torch.tensor([rows[whole[place]] for place in here], device=self.device)
            cache = _Filling(self, lanes[torch.tensor(here, device=self.device)], row)
            hidden = self.network.hidden(
                ids, position_ids=torch.arange(ids.shape[1], device=self.device)[None], cache=cache
            )
            for place in here:
                if not prompts[place].shared:
                    states[place] = hidden[rows[whole[place]], len(whole[place]) - 1]
        follow = [place for place, prompt in enumerate(prompts) if prompt.shared]
        step = max(room // self.width, 1)
        for begin in range(0, len(follow), step):
            here = follow[begin : begin + step]
            found = self._follow([prompts[place] for place in here], lanes[here])
            for place, state in zip(here, found, strict=True):
                states[place] = state
        return self.network.logits(torch.stack([state for state in states if state is not None]))

    def _follow(self, prompts: Sequence[TokenPrompt], lanes: Tensor) -> Tensor:
        """Run prompts' own tokens after what they share, which is in their lanes; return the states of their last."""
        ids, new = self._padded([prompt.own for prompt in prompts])
        before = torch.tensor([len(prompt.shared) for prompt in prompts], device=self.device)
        columns = torch.arange(ids.shape[1], device=self.device)
        # Padding repeats the last position, and is put where the last token of all is written over it.
        positions = before[:, None] + torch.minimum(columns, new[:, None] - 1)
        slots = torch.where(columns < new[:, None], positions, self.size - 1)
        seen = torch.arange(self.width, device=self.device) <= positions[..., None]
        hidden = self._attend(ids, positions, _Reading(self, lanes, slots, self.width), self._mask(seen))
        return hidden[torch.arange(len(prompts), device=self.device), new - 1]

    def step(self, ids: Tensor, positions: Tensor, slots: Tensor, seen: Tensor) -> Tensor:
        """Run a token of each hypothesis (lanes × beams) and return the logits of what follows.

        `slots` is where it is put, and `seen` (lanes × beams × slots) what it sees, itself included.
        """
        hidden = self._attend(ids, positions, _Reading(self, None, slots, seen.shape[2]), self._mask(seen))
        flat = hidden.flatten(0, 1)
        pieces = [self.network.logits(piece) for piece in flat.split(self.network.chunk)]
        return (pieces[0] if len(pieces) == 1 else torch.cat(pieces)).view(*ids.shape, -1)

    def keep(self, lanes: Tensor) -> None:
        """Keep only some lanes, in the order they are named."""
        self.count = len(lanes)
        for held in (self._keys, self._values):
            for layer in held:
                held[layer] = held[layer].index_select(0, lanes)

    def _attend(self, ids: Tensor, positions: Tensor, cache: Any, mask: Tensor) -> Tensor:
        with attending_by(_NAME, self.network.model):
            return self.network.hidden(ids, attention_mask=mask, position_ids=positions, cache=cache)

    def _mask(self, seen: Tensor) -> Tensor:
        """Return a mask as it is added, with the queries of heads that share keys below one another."""
        dtype = self.network.dtype
        mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        mask.masked_fill_(~seen, torch.finfo(dtype).min)
        return mask.repeat(1, self._groups, 1)[:, None]

    def _padded(self, runs: Sequence[Ids]) -> tuple[Tensor, Tensor]:
        """Return runs of tokens as rows, padded on the right, and how long each is."""
        width = max(map(len, runs))
        ids = torch.tensor([[*run, *[0] * (width - len(run))] for run in runs], device=self.device)
        return ids, torch.tensor([len(run) for run in runs], device=self.device)

    def put(self, layer: int, lanes: Tensor | None, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Write keys and values (rows × heads × tokens × width) into slots of lanes (all in turn if None)."""
        for held, new in ((self._keys, keys), (self._values, values)):
            if layer not in held:
                held[layer] = new.new_zeros((self.count, new.shape[1], self.size, new.shape[3]))
            where = torch.arange(self.count, device=new.device) if lanes is None else lanes
            held[layer][where[:, None], :, slots] = new.transpose(1, 2)

    def get(self, layer: int, lanes: Tensor | None, size: int) -> tuple[Tensor, Tensor]:
        keys, values = self._keys[layer][:, :, :size], self._values[layer][:, :, :size]
        return (keys, values) if lanes is None else (keys[lanes], values[lanes])


def _together(runs: Sequence[Ids], room: int) -> Iterator[list[Ids]]:
    """Divide runs of tokens, the longest first, so that each part has no more than `room` with its padding."""
    part: list[Ids] = []
    for run in sorted(runs, key=len, reverse=True):
        if part and (len(part) + 1) * len(part[0]) > room:
            yield part
            part = []
        part.append(run)
    if part:
        yield part


class _Filling(BranchCache):
    """The cache of a pass over beginnings: what row `rows[i]` has is put into lane `lanes[i]`, and is all it sees."""

    def __init__(self, store: Lanes, lanes: Tensor, rows: Tensor) -> None:
        super().__init__(Pool(0), None, None, None)
        self._store, self._lanes, self._rows = store, lanes, rows

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        slots = torch.arange(key_states.shape[2], device=key_states.device)[None]
        rows = self._rows
        self._store.put(layer_idx, self._lanes, slots, key_states[rows], value_states[rows])
        return key_states, value_states


class _Reading(BranchCache):
    """The cache of a pass over lanes: new tokens are put into their slots, and all of a lane is read."""

    def __init__(self, store: Lanes, lanes: Tensor | None, slots: Tensor, size: int) -> None:
        super().__init__(Pool(0), None, None, None)
        self._store, self._lanes, self._slots, self._size = store, lanes, slots, size

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        self._store.put(layer_idx, self._lanes, self._slots, key_states, value_states)
        return self._store.get(layer_idx, self._lanes, self._size)


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Attend by the mask, each key read once for all heads and hypotheses that share it."""
    if any(more.get(name) is not None for name in ("s_aux", "sliding_window", "softcap", "position_bias")):
        raise NotImplementedError("attention with sinks, windows, caps and biases is not run in lanes")
    rows, heads, length, width = query.shape
    folded = query.reshape(rows, key.shape[1], heads // key.shape[1] * length, width)
    found = torch.nn.functional.scaled_dot_product_attention(
        folded, key, value, attn_mask=attention_mask, scale=scaling
    )
    return found.reshape(rows, heads, length, value.shape[-1]).transpose(1, 2), None


AttentionInterface.register(_NAME, _attention)
