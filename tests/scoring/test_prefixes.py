"""What sequences share with their neighbours, against the plain definition."""

from __future__ import annotations

from itertools import pairwise, takewhile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ensue.scoring.prefixes import common_prefix, in_order

tokens = st.lists(st.sampled_from([0, 1, 255, 256, 50_000]), max_size=40)
# Many texts, several of which begin alike.
sequences = st.lists(st.tuples(st.sampled_from([0, 7, 16, 17, 48, 60]), tokens), max_size=12)


@given(sequences, st.sampled_from([(1, 0), (2, 64), (16, 1 << 18)]))
@example([(60, []), (60, []), (16, []), (0, [])], (16, 1 << 18))
def test_sequences_in_order_and_what_neighbours_share(
    drawn: list[tuple[int, list[int]]], widths: tuple[int, int]
) -> None:
    texts = [[*[3] * same, *rest] for same, rest in drawn]
    arrays = [np.asarray(text, np.int32) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ensue.scoring.prefixes._FEW", widths[0])
        patch.setattr("ensue.scoring.prefixes._TOGETHER", widths[1])
        places, shared, lengths, begins, flat = in_order(arrays)
    assert [flat[begin : begin + size].tolist() for begin, size in zip(begins, lengths, strict=True)] == texts
    places, shared = places.tolist(), shared.tolist()
    assert places == sorted(range(len(texts)), key=lambda place: (texts[place], place))
    expected = [_alike(texts[before], texts[after]) for before, after in pairwise(places)]
    assert shared == [0, *expected] * bool(texts)
    for (before, after), count in zip(pairwise(places), expected, strict=True):
        assert common_prefix(arrays[before], arrays[after]) == count


def _alike(one: list[int], other: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
