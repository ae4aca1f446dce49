"""Items and rows field by field, by a made-up metric whose values are plain to see."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ensue.benchmarks.squality.data import Question, Response, Story, StoryQuestion, examples
from ensue.benchmarks.squality.evaluation import human_items, judged_items, rows_of
from ensue.benchmarks.squality.systems import Summary
from ensue.errors import EnsueError
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of

ABOUT = {"version": "v9", "split": "dev"}


def shared(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, list[list[float]]]:
    """How many letters candidate and reference both have, over ten."""
    return {
        "shared": [
            [len(set(text) & set(other)) / 10 for other in given]
            for text, given in zip(candidates, references, strict=True)
        ]
    }


def example(story: str, number: int, *texts: str) -> StoryQuestion:
    question = Question(number, f"What of {number}?", tuple(Response(f"w{t}", "", t) for t in texts))
    return next(iter(examples([Story(story, "", "", "A story.", (question,))])))


ASKED = [
    example("s1", 1, "abc", "abd", "xyz"),
    example("s1", 2, "aaa", "b"),
    example("s2", 1, "qq", "abcdef"),
]
WRITTEN = [Summary("ab c", {"words_cut": 3}), Summary("", {}), Summary("f a b", {"words_cut": 0})]


def test_every_field_of_an_item() -> None:
    first, second, third = judged_items(ASKED, WRITTEN, [shared], ABOUT)
    assert (first["id"], first["cluster"], first["task"], first["settings"]) == (
        "s1/1",
        "s1",
        "squality",
        ABOUT,
    )
    assert first["scores"] == pytest.approx(
        {
            "shared": 0.3,
            "shared_mean": (0.3 + 0.2 + 0.0) / 3,
            # The best of the two that are left, over which is left out.
            "shared_loo": (0.2 + 0.3 + 0.3) / 3,
            "words": 2.0,
        }
    )
    assert first["outputs"] == {
        "question": "What of 1?",
        "summary": "ab c",
        "words_cut": 3,
        "by_reference": {"shared": [0.3, 0.2, 0.0]},
    }
    assert (second["scores"]["shared"], second["scores"]["words"]) == (0.0, 0.0)
    assert (third["id"], third["cluster"], third["scores"]["shared"]) == ("s2/1", "s2", 0.3)


def test_people_are_held_against_one_another_question_by_question() -> None:
    first, second, third = human_items(ASKED, [shared], ABOUT)
    # abc: best of abd (2) and xyz (0); abd the same; xyz shares nothing.
    assert first["scores"]["shared"] == pytest.approx((0.2 + 0.2 + 0.0) / 3)
    assert first["scores"]["shared_mean"] == pytest.approx((0.1 + 0.1 + 0.0) / 3)
    assert first["scores"]["shared_loo"] == first["scores"]["shared"]
    assert first["scores"]["words"] == 1.0
    assert (first["id"], first["cluster"], first["task"], first["settings"]) == (
        "s1/1",
        "s1",
        "squality",
        ABOUT,
    )
    assert first["outputs"] == {
        "question": "What of 1?",
        "summaries": [
            {"writer": "wabc", "by_reference": {"shared": [0.2, 0.0]}},
            {"writer": "wabd", "by_reference": {"shared": [0.2, 0.0]}},
            {"writer": "wxyz", "by_reference": {"shared": [0.0, 0.0]}},
        ],
    }
    # Each question's own summaries, and no other's.
    assert [one["writer"] for one in second["outputs"]["summaries"]] == ["waaa", "wb"]
    assert [one["writer"] for one in third["outputs"]["summaries"]] == ["wqq", "wabcdef"]


def test_every_field_of_a_row() -> None:
    items = judged_items(ASKED, WRITTEN, [shared], ABOUT)
    del items[1]["scores"]["shared_loo"]
    rows = rows_of(items)
    assert [row["metric"] for row in rows] == ["shared", "shared_mean", "words"]
    for row in rows:
        values = [item["scores"][row["metric"]] for item in items]
        interval = clustered_interval(values, ["s1", "s1", "s2"], bounds=range_of(row["metric"]))
        assert row["value"] == pytest.approx(np.mean(values))
        assert row["ci95"] == [interval.low, interval.high]
        assert (row["task"], row["n"], row["clusters"], row["settings"]) == ("squality", 3, 2, ABOUT)
    with pytest.raises(EnsueError, match="no question is left"):
        rows_of([])
