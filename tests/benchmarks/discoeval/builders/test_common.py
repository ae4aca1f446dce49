"""Sizes, shares and samples: everything adds up, nothing is in two splits."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.discoeval.builders.common import (
    SPLITS,
    SplitSizes,
    balanced,
    generator,
    numbered_lines,
    sample,
)
from ensue.errors import EnsueError

PUBLISHED = {"train": 10, "valid": 4, "test": 4}
ASKED = st.fixed_dictionaries({split: st.none() | st.integers(1, 12) for split in SPLITS})


@given(st.integers(0, 60), st.integers(2, 6), st.integers(0, 5))
def test_balanced_classes_differ_by_one_at_most(count, classes, seed):
    drawn = balanced(count, classes, generator(seed, "x"))
    counts = [drawn.count(one) for one in range(classes)]
    assert sum(counts) == count == len(drawn)
    assert max(counts) - min(counts) <= 1


@given(ASKED, st.integers(0, 60))
def test_shares_are_as_asked_and_never_more_than_there_is(asked, supply):
    fixed = sum(count for count in asked.values() if count)
    least = fixed + sum(count is None for count in asked.values())
    if supply < least:
        with pytest.raises(EnsueError, match="at least"):
            SplitSizes(asked, PUBLISHED).shares(supply, "here")
        return
    shares = SplitSizes(asked, PUBLISHED).shares(supply, "here")
    assert sum(shares.values()) == min(supply, sum(asked[s] or PUBLISHED[s] for s in SPLITS))
    for split, count in shares.items():
        assert count == asked[split] if asked[split] else 1 <= count <= PUBLISHED[split]


def test_a_large_source_gives_the_published_sizes():
    assert SplitSizes(dict.fromkeys(SPLITS), PUBLISHED).shares(1000, "here") == PUBLISHED


@given(ASKED, st.lists(st.integers(1, 5), max_size=30))
def test_an_item_goes_to_one_split_and_gives_no_more_than_it_has(asked, supplies):
    sizes = SplitSizes(asked, PUBLISHED)
    try:
        found = sizes.allot(list(enumerate(supplies)), "here")
    except EnsueError:
        return
    used = list(chain.from_iterable(found.values()))
    assert len({item for item, _ in used}) == len(used)
    assert all(1 <= count <= supplies[item] for item, count in used)
    for split, items in found.items():
        total = sum(count for _, count in items)
        assert total >= 1
        assert total == asked[split] if asked[split] else total <= PUBLISHED[split]


@given(st.integers(1, 9), st.integers(0, 40))
def test_a_sample_holds_different_items_of_the_stream(size, count):
    kept = sample(range(count), size, generator(0, "r"))
    assert len(set(kept)) == len(kept) == min(size, count)
    assert set(kept) <= set(range(count))


def test_a_sample_takes_every_item_equally_often():
    counts: Counter[int] = Counter()
    for seed in range(3000):
        counts.update(sample(range(10), 3, generator(seed, "r")))
    # 900 expected of each, with a standard deviation of 25.
    assert all(800 < counts[number] < 1000 for number in range(10))


def test_pairs_need_an_even_number():
    with pytest.raises(EnsueError, match="--valid must be even"):
        SplitSizes({"train": 4, "valid": 3, "test": None}, PUBLISHED).halved()


def test_a_line_in_another_encoding_is_named(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("one\ncaf\xe9\n".encode("latin-1"))
    with pytest.raises(EnsueError, match=r"a\.txt is not UTF-8 \(line 2, byte 7\)"):
        list(numbered_lines(path, "utf-8"))
    assert [line for _, line in numbered_lines(path, "latin-1")] == ["one", "café"]
    with pytest.raises(EnsueError, match="not a text encoding"):
        list(numbered_lines(path, "klingon"))
