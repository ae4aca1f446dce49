"""Vectors of many texts on a GPU: tokenised ahead in a thread, run without waiting, read one batch late."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from ensue.backends.hf.batching import States, batches
from ensue.parallel import ahead
from ensue.scoring.kernels import without_cudnn
from ensue.scoring.texts import EndToEnd, lay
from ensue.scoring.transfers import Arriving, fetch

# Texts that are tokenised at a time, those of like length together.
CHUNK = 16_384
_BATCH_TOKENS = 65_536
# Texts by which the quick way to tokenise is compared with the tokenizer's own.
_COMPARED = 16

Vectors = npt.NDArray[np.float32]
Chosen = npt.NDArray[np.int64]
Pooled = Callable[[States], torch.Tensor]


class Tokens(NamedTuple):
    """The ids of all texts one after another, and how many each has."""

    ids: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int64]

    def take(self, chosen: npt.NDArray[np.int64]) -> Tokens:
        """Return the ids of some texts, in the order they are named."""
        lengths = self.lengths[chosen]
        begins = (np.cumsum(self.lengths) - self.lengths)[chosen]
        places = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
        return Tokens(self.ids[places], lengths)


def joined(rows: Sequence[Sequence[int]]) -> Tokens:
    """Return rows of ids one after another."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return Tokens(np.fromiter(chain.from_iterable(rows), np.int32, int(lengths.sum())), lengths)


class QuickTokenizer:
    """Tokenises texts with their special tokens, cut at `limit`, as `plain` does by the library's long way.

    Whether both agree is found out on the first texts; where they do not, `plain` does it all.
    """

    def __init__(
        self, tokenizer: Any, limit: int | None, plain: Callable[[Sequence[str]], list[list[int]]]
    ) -> None:
        self._plain = plain
        self._own = _copy(tokenizer, limit)
        self._trusted = False

    def __call__(self, texts: Sequence[str]) -> Tokens:
        if self._own is None:
            return joined(self._plain(texts))
        rows = self._quick(texts)
        if not self._trusted and rows[:_COMPARED] != self._plain(texts[:_COMPARED]):
            self._own = None
            return joined(self._plain(texts))
        self._trusted = True
        return joined(rows)

    def _quick(self, texts: Sequence[str]) -> list[list[int]]:
        own: Any = self._own
        encode = getattr(own, "encode_batch_fast", own.encode_batch)
        return [encoding.ids for encoding in encode(list(texts))]


def _copy(tokenizer: Any, limit: int | None) -> Any | None:
    """Return a Rust tokenizer of its own: the library's changes its settings with each call. None for a slow one."""
    if not getattr(tokenizer, "is_fast", False):
        return None
    from tokenizers import Tokenizer

    own = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    own.no_padding()
    if limit is None:
        own.no_truncation()
    else:
        own.enable_truncation(limit, direction=tokenizer.truncation_side)
    return own


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
