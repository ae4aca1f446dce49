"""The packed tree: every token sees its own text and no other, and every part is read off where it should be."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ensue.models.request import TokenPart
from ensue.scoring.forest import grow_forest
from ensue.scoring.rows import Row, make_rows, seen_blocks
from tests.scoring.test_tree import as_parts, sequences, thresholds


def texts_seen(row: Row) -> list[list[int]]:
    """Return for each place the tokens that it sees, by the definition."""
    places = range(len(row.ids))
    return [[int(row.ids[k]) for k in places if k <= q < row.ends[k]] for q in places]


@given(sequences, thresholds, st.integers(1, 80))
def test_every_part_is_read_off_states_that_saw_its_own_tokens(
    texts: list[list[int]], limits: tuple[int, int], room: int
) -> None:
    parts = as_parts(texts)
    forest = grow_forest(parts, min_run=limits[0], min_saved=limits[1])
    read = []
    for row in make_rows(forest, room):
        seen = texts_seen(row)
        assert [len(one) - 1 for one in seen] == row.positions.tolist()
        for part, asked in row.pieces.of(np.arange(len(row.targets))):
            assert row.targets[asked].tolist() == texts[part][parts[part].start :]
            expected = [texts[part][:end] for end in range(parts[part].start, len(texts[part]))]
            assert [seen[place] for place in row.states[asked]] == expected
            read.append(part)
    assert sorted(read) == list(range(len(texts)))


@given(sequences, st.integers(24, 80))
def test_rows_keep_to_their_room_and_lose_little(texts: list[list[int]], room: int) -> None:
    parts = as_parts(texts)
    forest = grow_forest(parts, min_run=4, min_saved=8)
    rows = list(make_rows(forest, room))
    longest = max(len(text) for text in texts)
    assert all(len(row.ids) <= room for row in rows)
    # Two neighbours never fit into one: what would have begun the second did not fit the first.
    for one, other in pairwise(rows):
        assert len(one.ids) + min(len(other.ids), longest) > room


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20), st.integers(1, 40))
def test_documents_come_in_the_order_of_their_first_parts(documents: list[int], room: int) -> None:
    parts = as_parts([[document, 10, 11 + i % 2] for i, document in enumerate(documents)])
    rows = make_rows(grow_forest(parts, min_run=1, min_saved=1), room)
    met = [
        int(one) for row in rows for one, position in zip(row.ids, row.positions, strict=True) if not position
    ]
    assert list(dict.fromkeys(met)) == list(dict.fromkeys(documents))


@given(sequences, thresholds, st.integers(0, 7), st.none() | st.integers(1, 12))
def test_blocks_are_what_their_tokens_see(
    texts: list[list[int]], limits: tuple[int, int], more: int, window: int | None
) -> None:
    block = 4
    parts = as_parts(texts)
    forest = grow_forest(parts, min_run=limits[0], min_saved=limits[1])
    for row in make_rows(forest, 64):
        length = -(-(len(row.ids) + more) // block) * block
        padded = row.padded(length)
        assert len(padded.ids) == len(padded.positions) == len(padded.ends) == length
        place = np.arange(length)
        sees = (place[None] <= place[:, None]) & (place[:, None] < padded.ends[None])
        if window is not None:
            sees &= padded.positions[:, None] - padded.positions[None] < window
        assert sees.any(1).all()  # padding sees itself, or its state is no number
        assert not sees[len(row.ids) :, : len(row.ids)].any()
        tiles = sees.reshape(length // block, block, length // block, block).transpose(0, 2, 1, 3)
        in_part, in_whole = seen_blocks(padded.ends, block, positions=padded.positions, window=window)
        for q in range(length // block):
            some, whole = (
                [int(k) for k in found.keys[found.queries == q][np.argsort(found.places[found.queries == q])]]
                for found in (in_part, in_whole)
            )
            assert (in_part.counts[q], in_whole.counts[q]) == (len(some), len(whole))
            assert len(set(some + whole)) == len(some) + len(whole)
            # What is said to be seen whole is; what is seen at all is listed. The diagonal is never whole.
            assert whole == [k for k in range(length // block) if tiles[q, k].all() and k != q]
            assert {k for k in range(length // block) if tiles[q, k].any()} <= set(some + whole)


def test_nothing_is_asked_in_a_run_that_only_conditions() -> None:
    """All parts begin to be scored some tokens after the run that they share."""
    texts = [[*range(40), *range(100 * n, 100 * n + 20)] for n in (1, 2, 3)]
    parts = [TokenPart(np.asarray(text, np.int32), 45) for text in texts]
    forest = grow_forest(parts)
    assert forest.ends[0] == 40 < forest.scored_from[0]
    (row,) = make_rows(forest, 4096)
    assert len(row.ids) == 40 + 3 * 19
    assert row.targets.tolist() == [token for text in texts for token in text[45:]]
    assert [row.ids[place] for place in row.states] == [token for text in texts for token in text[44:-1]]
    read = [(part, asked.tolist()) for part, asked in row.pieces.of(np.arange(45))]
    assert read == [(part, list(range(15 * part, 15 * part + 15))) for part in range(3)]


def test_padding_sees_itself_alone_and_a_part_that_is_kept_keeps_no_row() -> None:
    parts = [TokenPart(np.arange(40, dtype=np.int32), 1), TokenPart(np.arange(100, 120, dtype=np.int32), 1)]
    (row,) = make_rows(grow_forest(parts), 128)
    count = len(row.ids)
    assert row.padded(128).ends[count:].tolist() == list(range(count + 1, 129))
    assert all(own.base is None for _, own in row.pieces.of(np.zeros(len(row.targets))))


def test_blocks_beyond_a_window_are_not_looked_at() -> None:
    ends, positions = np.full(512, 512, np.int32), np.arange(512, dtype=np.int32)
    some, whole = seen_blocks(ends, 64, positions=positions, window=64)
    assert (some.counts + whole.counts).tolist() == [1] + [2] * 7
