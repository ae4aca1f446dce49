"""Columns of sentences and gold, and where a sentence first stands."""

from __future__ import annotations

from collections import Counter

import pytest

from ensue.benchmarks.senteval.data import TASKS, ExampleRows, SentEvalData


def rows(*lines: tuple[str, str, float]) -> ExampleRows:
    found = ExampleRows()
    for number, (first, second, gold) in enumerate(lines, start=1):
        found.add(f"news/{number}", [first, second], gold)
    return found


def test_a_row_stands_in_every_column() -> None:
    found = rows(("a", "b", 1.0), ("c", "d", 2.5))
    assert (found.ids, found.texts, found.gold) == (
        ["news/1", "news/2"],
        (["a", "c"], ["b", "d"]),
        [1.0, 2.5],
    )
    assert (len(found), found.scores.tolist(), found.labels.tolist()) == (2, [1.0, 2.5], [1, 2])
    with pytest.raises(ValueError, match=r"longer|shorter"):
        found.add("news/3", ["only one"], 0.0)


def test_a_sentence_is_found_where_it_first_stands() -> None:
    parts = {"news": rows(("a", "b", 1.0), ("c", "b", 2.0), ("a", "e", 0.0))}
    data = SentEvalData(TASKS["STS12"], parts, (), Counter(), Counter())
    assert data.place_of("a") == "STS12, news, line 1"
    assert data.place_of("b") == "STS12, news, line 1"
    assert data.place_of("e") == "STS12, news, line 3"
    assert data.place_of("z") is None
    assert list(data.sentences()) == ["a", "c", "a", "b", "b", "e"]
