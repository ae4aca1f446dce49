"""Token ids of many texts at once, by the Rust tokenizer's own threads and with nothing made but the ids."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# Texts by which the quick way is compared with the tokenizer's own.
_COMPARED = 16


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
