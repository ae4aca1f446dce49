"""Which texts are run together, how rows of different lengths become one batch, and what comes of one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

# The part of a batch that may be padding, and the part of the budget below which a batch may have more of it.
_PADDING, _SMALL = 1 / 16, 1 / 8
# On a CPU, larger batches only leave its caches and are slower.
_BATCH_TOKENS = {"cpu": 1024, "cuda": 65_536}
# How far states may move, as a part of the largest, and be the same but for rounding.
_EQUAL, _NEARLY = 1e-3, 0.1


class States(NamedTuple):
    """What a trunk made of a batch: its last states, all layers' where asked, and a mask of what is no padding (None
    where nothing is)."""

    last: Any
    layers: Sequence[Any] | None
    mask: Any | None


def like_long(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Choose which texts are read together, the longest first: within the budget of tokens, with little padding."""
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


def continued_together(
    lengths: Sequence[int], new: int, room: int, *, rows: float = math.inf, border: float = math.inf
) -> Iterator[list[int]]:
    """Choose which prompts are continued together, the longest first: what does not fit memory shows at once.

    One that may go beyond the border, where positions are those of the longest of a batch, is continued alone.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        longest = lengths[batch[0]] + new if batch else 0
        if batch and (len(batch) == rows or (len(batch) + 1) * longest > room or longest > border):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def pad(rows: Sequence[Sequence[int]], fill: int, *, left: bool = False) -> tuple[Any, Any]:
    """Return rows of tokens as one tensor, padded on the right or left, and the mask that hides the padding."""
    import torch

    def joined(row: list[int], gap: list[int]) -> list[int]:
        return gap + row if left else row + gap

    width = max(*map(len, rows), 1)
    ids = [joined(list(row), [fill] * (width - len(row))) for row in rows]
    mask = [joined([1] * len(row), [0] * (width - len(row))) for row in rows]
    return torch.tensor(ids), torch.tensor(mask)


def batches(network: Any, lengths: Sequence[int]) -> Iterator[list[int]]:
    """Choose which texts are run together; only those of one length where a model would take padding for text, or has
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
        for chosen in like_long([lengths[i] for i in group], budget):
            yield [group[i] for i in chosen]


def _heeds_mask(network: Any) -> bool:
    """Find out, once a network, whether a text's states are the same beside a longer one."""
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
