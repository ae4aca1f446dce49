"""Token sequences in order, and how much each has in common with the one before it: what a prefix tree is made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]

# Tokens that are compared at once: few at first, since most neighbours part soon; then more.
_FEW, _MANY = 16, 512


def common_prefix(a: Ids, b: Ids) -> int:
    """Count the leading tokens that two sequences share."""
    n = min(len(a), len(b))
    if not n:
        return 0
    different = a[:n] != b[:n]
    first = int(different.argmax())
    return first if different[first] else n


class InOrder(NamedTuple):
    """Where sequences are in the order of their tokens, and the leading tokens each shares with the one before."""

    places: list[int]
    shared: list[int]


def in_order(sequences: Sequence[Ids]) -> InOrder:
    """Sort sequences by their tokens, a prefix before what it begins; equal ones stay as they were."""
    if not sequences:
        return InOrder([], [])
    flat = np.concatenate(sequences)
    ends = np.cumsum([len(one) for one in sequences])
    # As bytes, of which the most significant comes first, sequences compare by their tokens.
    whole = flat.astype(">u4").tobytes()
    borders = [0, *(4 * ends).tolist()]
    keys = [whole[begin:end] for begin, end in pairwise(borders)]
    places = sorted(range(len(keys)), key=keys.__getitem__)
    lengths = np.diff(ends, prepend=0)
    return InOrder(places, [0, *_shared(flat, (ends - lengths)[places], lengths[places]).tolist()])


def _shared(
    flat: Ids, begins: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Count the leading tokens that each sequence but the first shares with the one before it."""
    most = np.minimum(lengths[1:], lengths[:-1])
    shared = np.zeros(len(most), np.int64)
    alike = np.arange(len(most))
    done, width = 0, _FEW
    while len(alike):
        offsets = np.arange(done, done + width)
        before, after = (
            flat.take(some[alike, None] + offsets, mode="clip") for some in (begins[:-1], begins[1:])
        )
        same = (before == after) & (offsets < most[alike, None])
        parted = same.argmin(1)
        whole = same[np.arange(len(alike)), parted]
        shared[alike] = done + np.where(whole, width, parted)
        alike = alike[whole]
        done, width = done + width, min(2 * width, _MANY)
    return shared
