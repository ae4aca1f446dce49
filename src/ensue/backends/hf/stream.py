"""Vectors of many texts on a GPU: tokenised ahead in a thread, run without waiting, read one batch late."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ensue.backends.hf.batching import States, batches
from ensue.backends.hf.tokenising import Tokens
from ensue.parallel import ahead
from ensue.scoring.kernels import without_cudnn
from ensue.scoring.texts import EndToEnd, lay
from ensue.scoring.transfers import Arriving, fetch

# Texts that are tokenised at a time, those of like length together.
CHUNK = 16_384
_BATCH_TOKENS = 65_536

Vectors = npt.NDArray[np.float32]
Chosen = npt.NDArray[np.int64]


Pooled = Callable[[States], torch.Tensor]


def stream(
    run: PaddedRun | EndToEndRun,
    tokenise: Callable[[Sequence[str]], Tokens],
    texts: Sequence[str],
    pooled: Pooled,
    *,
    chunk: int = CHUNK,
) -> Iterator[tuple[Chosen, Vectors]]:
    """Yield which texts, and their vectors, batch by batch; every text comes once."""
    # By characters, the longest first: what does not fit memory shows at once.
    order = np.argsort([-len(text) for text in texts], kind="stable")
    parts = [order[begin : begin + chunk] for begin in range(0, len(order), chunk)]

    def tokens_of(part: Chosen) -> tuple[Chosen, Tokens]:
        return part, tokenise([texts[i] for i in part])

    waiting: tuple[Chosen, Arriving] | None = None
    for part, tokens in ahead(tokens_of, parts):
        for chosen in run.batches(tokens.lengths):
            with torch.inference_mode():
                found = fetch(pooled(run(tokens.take(chosen))).float())
            if waiting is not None:
                yield waiting[0], waiting[1].numpy()
            waiting = part[chosen], found
    if waiting is not None:
        yield waiting[0], waiting[1].numpy()


class PaddedRun:
    """Runs a batch as rows padded on the right, which is done on the device."""

    def __init__(self, network: Any, pad: int, *, all_layers: bool) -> None:
        self._network, self._pad = network, pad
        self._options: dict[str, Any] = {"output_hidden_states": all_layers}
        if "use_cache" in inspect.signature(network.base_model.forward).parameters:
            self._options["use_cache"] = False

    def batches(self, lengths: npt.NDArray[np.int64]) -> Iterator[Chosen]:
        for chosen in batches(self._network, lengths.tolist()):
            yield np.asarray(chosen)

    def __call__(self, tokens: Tokens) -> States:
        even = int(tokens.lengths.min()) == max(int(tokens.lengths.max()), 1)
        row = lay(tokens.ids, tokens.lengths, self._network.device)
        ids, mask = (
            row.padded(row.ids) if len(row.ids) else (row.ids.new_zeros((len(tokens.lengths), 1)), None)
        )
        mask = torch.zeros_like(ids, dtype=torch.bool) if mask is None else mask
        ids = ids.masked_fill(~mask, self._pad)
        seen = None if even else mask.long()
        with without_cudnn(self._network.device):
            result = self._network.base_model(input_ids=ids, attention_mask=seen, **self._options)
        return States(
            result[0], result.hidden_states if self._options["output_hidden_states"] else None, seen
        )


class EndToEndRun:
    """Runs the texts of a batch end to end."""

    def __init__(self, way: EndToEnd, padded: PaddedRun, *, all_layers: bool) -> None:
        self._way, self._padded, self._all = way, padded, all_layers

    def batches(self, lengths: npt.NDArray[np.int64]) -> Iterator[Chosen]:
        order = np.argsort(-lengths, kind="stable")
        total = np.cumsum(lengths[order])
        begin = 0
        while begin < len(order):
            before = total[begin - 1] if begin else 0
            end = max(int(np.searchsorted(total, before + _BATCH_TOKENS, "right")), begin + 1)
            yield order[begin:end]
            begin = end

    def __call__(self, tokens: Tokens) -> States:
        if not len(tokens.ids):
            return self._padded(tokens)
        row = self._way.lay(tokens.ids, tokens.lengths)
        result = self._way.run(row, output_hidden_states=self._all)
        last, mask = row.padded(result[0][0])
        layers = tuple(row.padded(one[0])[0] for one in result.hidden_states) if self._all else None
        return States(last, layers, mask.long())
