"""Token sequences in order, and how much each has in common with the one before it: what a prefix tree is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]

# Tokens of each that are compared at once: few at first, since most neighbours part soon; then more, up to so many of
# all together.
_FEW, _GROWTH, _TOGETHER = 16, 4, 1 << 18


def common_prefix(a: Ids, b: Ids) -> int:
    """Count the leading tokens that two sequences share."""
    n = min(len(a), len(b))
    if not n:
        return 0
    different = a[:n] != b[:n]
    first = int(different.argmax())
    return first if different[first] else n


class InOrder(NamedTuple):
    """Where sequences are in the order of their tokens, and the leading tokens each shares with the one before.

    Sequence i, in the order in which they were given, lies in `flat` from `begins[i]` on.
    """

    places: Places
    shared: Places
    lengths: Places
    begins: Places
    flat: Ids


def in_order(sequences: Sequence[Ids]) -> InOrder:
    """Sort sequences by their tokens, a prefix before what it begins; equal ones stay as they were.

    They are sorted by a window of tokens, then those that have all of it in common by the next one.
    """
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    begins = np.cumsum(lengths) - lengths
    flat = np.concatenate([*sequences, np.zeros(lengths.max(initial=0) + 1, np.int32)])
    places, shared = np.arange(len(lengths)), np.zeros(len(lengths), np.int64)
    # The places in the order that are not sure yet, and the numbers of those that are alike so far.
    unsure, alike = places.copy(), shared.copy()
    done, width = 0, _FEW
    while len(unsure):
        own = places[unsure]
        left = lengths[own] - done
        width = min(width, 1 + _TOGETHER // len(own), 1 + int(left.max()))
        keys = np.empty((len(own), 1 + width), ">i4")
        keys[:, 0] = alike
        keys[:, 1:] = _windows(flat, begins[own] + done, left, width)
        # As bytes, of which the most significant comes first, windows compare by their tokens.
        order = np.argsort(keys.view(np.dtype((np.void, keys.itemsize * (1 + width))))[:, 0], kind="stable")
        places[unsure] = own[order]
        sorted_keys = keys.view(np.int32)[order]
        differs = sorted_keys[1:] != sorted_keys[:-1]
        parted = differs.argmax(1)
        same = ~differs[np.arange(len(parted)), parted]
        # What was not alike before this window has its number already.
        here = same | (parted > 0)
        shared[unsure[1:][here]] = done + np.where(same, np.minimum(left[order][1:], width), parted - 1)[here]
        same &= left[order][1:] >= width
        joins, joined = np.append(False, same), np.append(same, False)
        going_on = joins | joined
        unsure, alike = unsure[going_on], np.cumsum(~joins)[going_on]
        done, width = done + width, _GROWTH * width
    return InOrder(places, shared, lengths, begins, flat)


def _windows(flat: Ids, begins: Places, left: Places, width: int) -> Ids:
    """Return windows of so many tokens, as numbers above 0; 0 is what lies beyond the end of a sequence."""
    every = np.ndarray((len(flat) - width + 1, width), flat.dtype, flat, strides=2 * flat.strides)
    found: Ids = every[begins] + 1
    if left.min() < width:
        found *= np.arange(width) < left[:, None]
    return found
