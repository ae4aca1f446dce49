"""The record of scores: what goes in comes out, to the type and the last bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.models.request import Score
from ensue.records import Records, plain
from ensue.scoring.journal import Journal

numbers = st.floats(allow_nan=False, allow_infinity=False)
spans = st.tuples(st.integers(0, 99), st.integers(0, 99))
bare = st.tuples(numbers, st.integers(0, 99), numbers)
detailed = st.tuples(
    *(numbers, st.integers(0, 99), numbers),
    st.lists(numbers, max_size=4).map(tuple),
    st.none() | st.lists(spans, max_size=4).map(tuple),
)
scores = (bare | detailed).map(lambda values: Score(*values))


@given(st.lists(scores, max_size=5))
def test_every_score_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, kept: list[Score]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j"
    with Journal(path) as journal:
        journal.add((f"key {place}", score) for place, score in enumerate(kept))
        assert len(journal) == len(kept)
    with Journal(path) as journal:
        assert len(journal) == len(kept)
        found = [journal.get(f"key {place}", detail=False) for place in range(len(kept))]
    assert repr(found) == repr(kept)


def test_whole_numbers_come_back_as_the_numbers_they_stand_for(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.add([("k", Score(-3, 2, -1, (-1, -2), ((0, 1), (1, 2))))])
    with Journal(tmp_path / "j") as journal:
        found = journal.get("k", detail=True)
    assert repr(found) == repr(Score(-3.0, 2, -1.0, (-1.0, -2.0), ((0, 1), (1, 2))))


def test_detail_is_answered_by_detail_or_where_there_is_nothing_to_detail(tmp_path: Path) -> None:
    bare, empty = Score(-1.0, 2, -0.5), Score(0.0, 0, 0.0)
    full = Score(-1.0, 2, -0.5, (-0.25, -0.75))
    with Journal(tmp_path / "j") as journal:
        journal.add([("bare", bare), ("empty", empty), ("full", full)])
        assert journal.get("bare", detail=False) == bare
        assert journal.get("bare", detail=True) is None
        assert journal.get("empty", detail=True) == journal.get("empty", detail=False) == empty
        assert journal.get("full", detail=True) == journal.get("full", detail=False) == full
        assert journal.get("other", detail=True) is journal.get("other", detail=False) is None


def test_scores_lie_among_the_records_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Records(path) as records:
        records.add(plain("texts"), [("k", "a text")])
        journal = Journal(records)
        journal.add([("k", Score(-1.0, 2, -0.5))])
        assert len(journal) == 1
    uses = [json.loads(line)[2:] for line in path.read_text().splitlines()]
    assert uses == [["texts", "k", "a text"], ["scores", "k", [-1.0, 2, -0.5]]]
    with Journal(path) as journal:
        assert journal.get("k", detail=False) == Score(-1.0, 2, -0.5)
