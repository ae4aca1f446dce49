"""Putting a task together: limits keep groups whole, ids are unique, numbers of rows are compared."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, Example, TaskData, TaskSpec
from ensue.benchmarks.nlu.gathering import Gathering
from ensue.errors import EnsueError

SPEC = TaskSpec("Toy", "glue", "single", ("0", "1"), ("accuracy",), {TRAIN: 3, DEV: 2}, "Toy.tsv")


def _gather(examples: Sequence[Example], limit: int | None = None, split: str = TRAIN) -> TaskData:
    gathering = Gathering(SPEC, limit)
    gathering.add_rows(split, examples)
    found = gathering.finish()
    assert found is not None
    return found


def _of_groups(sizes: Sequence[int]) -> list[Example]:
    return [
        Example(f"{group}-{place}", ("a word",), "0", group=str(group))
        for group, size in enumerate(sizes)
        for place in range(size)
    ]


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=8), limit=st.integers(1, 40))
def test_a_limit_takes_the_fewest_whole_groups_that_reach_it(sizes: list[int], limit: int) -> None:
    kept = _gather(_of_groups(sizes), limit).splits[TRAIN]
    total = 0
    for size in sizes:
        if total >= limit:
            break
        total += size
    assert len(kept) == total


def test_numbers_of_rows_are_compared_only_when_all_were_read() -> None:
    assert _gather(_of_groups([1, 1])).notes == {"train rows, of 3 published": 2}
    assert _gather(_of_groups([1, 1]), limit=2).notes == {}
    assert _gather(_of_groups([1, 1, 1])).notes == {}
    assert _gather(_of_groups([1]), split=TEST).notes == {}


def test_the_fingerprint_is_of_the_content() -> None:
    one = _of_groups([2])
    assert _gather(one).fingerprint == _gather(list(one)).fingerprint
    assert _gather(one).fingerprint != _gather([*one[:1], Example("0-1", ("a wood",), "0")]).fingerprint
    assert _gather(one).fingerprint != _gather(one, split=DEV).fingerprint


@pytest.mark.parametrize(
    ("golds", "split", "words"),
    [
        (("0", None), TEST, "there: some rows of the split have a label and some have none"),
        ((None, "0"), TEST, "there: some rows of the split have a label and some have none"),
        ((None, None), DEV, "here: there is no label, which only test rows of Toy may lack"),
    ],
)
def test_labels_are_there_or_not(golds: tuple[str | None, str | None], split: str, words: str) -> None:
    rows = [
        Example(str(n), ("x",), gold, where=w)
        for n, (gold, w) in enumerate(zip(golds, ("here", "there"), strict=True))
    ]
    with pytest.raises(EnsueError, match=f"^{words}"):
        _gather(rows, split=split)


def test_an_id_occurs_once() -> None:
    rows = [Example("7", ("x",), "0", where=where) for where in ("f.tsv, line 2", "f.tsv, line 9")]
    with pytest.raises(EnsueError, match=r"f\.tsv, line 9: the id '7' was there before, at f\.tsv, line 2"):
        _gather(rows)


def test_nothing_gathered_is_nothing() -> None:
    assert Gathering(SPEC).finish() is None
    with pytest.raises(EnsueError, match="no rows in its train split"):
        _gather([])
    with pytest.raises(EnsueError, match="limit of examples is 0"):
        Gathering(SPEC, 0)
