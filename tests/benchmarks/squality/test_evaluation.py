"""Items and rows field by field, by a made-up metric whose values are plain to see."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ensue.backends.names import load_model
from ensue.benchmarks.base import RunContext
from ensue.benchmarks.squality.data import Example, Question, Response, Story, examples, read_stories
from ensue.benchmarks.squality.evaluation import human_items, judged_items, rows_of
from ensue.benchmarks.squality.human_eval import Judgment, Rated, Review
from ensue.benchmarks.squality.judged import (
    Correlation,
    MeanAndMax,
    references_of,
    summary_correlations,
    system_correlations,
)
from ensue.benchmarks.squality.systems import Summary
from ensue.benchmarks.squality.task import TASK
from ensue.errors import EnsueError
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of
from tests.benchmarks.squality.invented import evaluation_row, story_row, write_rows
from tests.benchmarks.squality.test_task import asked

ABOUT = {"version": "v9", "split": "dev"}


def shared(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, list[list[float]]]:
    """How many letters candidate and reference both have, over ten."""
    return {
        "shared": [
            [len(set(text) & set(other)) / 10 for other in given]
            for text, given in zip(candidates, references, strict=True)
        ]
    }


def example(story: str, number: int, *texts: str) -> Example:
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


def rated(story: str, system: str, overall: float, text: str = "A text.", correct: float = 50.0) -> Rated:
    ratings = {"overall": overall, "correctness": correct, "coverage": 1.0}
    judgments = {name: Judgment(rating, 1) for name, rating in ratings.items()}
    return Rated(story, 1, system, text, (Review("w", judgments, ()),))


def test_a_correlation_is_told_from_zero_where_its_interval_leaves_zero_out() -> None:
    def told(low: float | None, high: float | None) -> bool:
        return Correlation("m", "all", "pearson", 0.5, low, high, 9).told_from_zero

    assert [told(0.1, 0.9), told(-0.9, -0.1)] == [True, True]
    assert [told(0.0, 0.9), told(-0.9, 0.0), told(-0.1, 0.1), told(None, None)] == [False] * 4
    assert MeanAndMax(0.25, 0.75).difference == 0.5


def test_correlations_are_with_the_overall_rating_story_by_story() -> None:
    generator = np.random.default_rng(2)
    held, values = [], []
    for story in range(8):
        for system in ("bart", "bart-dpr", "human"):
            overall, correct = generator.normal(50, 10, 2)
            held.append(rated(f"s{story}", system, overall, correct=correct))
            values.append(overall / 10 + generator.normal())
    overall = [one.rating("overall") for one in held]
    found = {row.subset: row for row in summary_correlations(held, {"m": values}, seed=1)}
    assert list(found) == ["model", "human", "all"]
    assert (found["all"].metric, found["all"].kind, found["all"].n) == ("m", "pearson", 24)
    assert found["all"].value == pytest.approx(stats.pearsonr(values, overall)[0])
    places = [n for n, one in enumerate(held) if one.system != "human"]
    assert (found["model"].n, found["human"].n) == (16, 8)
    assert found["model"].value == pytest.approx(
        stats.pearsonr([values[n] for n in places], [overall[n] for n in places])[0]
    )
    again = summary_correlations(held, {"m": values}, seed=2)
    assert [(row.low, row.high) for row in again] != [(row.low, row.high) for row in found.values()]
    # Two summaries of one story in each round or none: other clusters, another interval.
    apart = [one._replace(story=f"{one.story}-{one.system}") for one in held]
    other = {row.subset: row for row in summary_correlations(apart, {"m": values}, seed=1)}
    assert (other["all"].low, other["all"].high) != (found["all"].low, found["all"].high)
    assert other["all"].value == found["all"].value
    every = {row.subset: row for row in system_correlations(held, {"m": values})}
    assert (every["all"].n, every["model"].n, every["human"].n) == (3, 2, 1)
    assert (every["all"].low, every["all"].high, every["human"].value) == (None, None, None)
    one = summary_correlations(held[:1], {"m": values[:1]})
    assert [(row.value, row.low, row.high, row.n) for row in one] == [
        (None, None, None, 1),
        (None, None, None, 0),
        (None, None, None, 1),
    ]


def test_a_persons_own_text_is_left_out_whatever_its_spaces() -> None:
    stories = [ASKED[0].story]
    (found,) = references_of([rated("s1", "human", 9.0, text=" abd\n")], stories)
    assert found == ("abc", "xyz")
    (whole,) = references_of([rated("s1", "bart", 9.0, text="abd")], stories)
    assert whole == ("abc", "abd", "xyz")


def test_the_human_evaluation_field_by_field(tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", story_row("1"), story_row("2"), story_row("3"))
    write_rows(
        tmp_path / "human-eval" / "all-responses.jsonl", *(evaluation_row(str(n), 2.0 * n) for n in (1, 2, 3))
    )
    prepared: Any = TASK.prepare("human-eval", str(tmp_path), None, 4, asked(metrics="rouge"))
    outcome = prepared.evaluate(load_model("human"), RunContext())
    assert outcome.notes["the model human takes no part in human-eval"] == 1
    items = list(outcome.items)
    first = items[0]
    assert (first["id"], first["cluster"], first["task"]) == ("1/1/bart", "1", "human-eval")
    assert first["settings"] == {"system": "bart"}
    # Ratings of 10, 20 and 33, less 2 each.
    assert [first["scores"][name] for name in ("correctness", "coverage", "overall")] == pytest.approx(
        [(63 - 6) / 300] * 3
    )
    assert first["scores"]["rouge1_loo"] < first["scores"]["rouge1"]
    person = next(item for item in items if item["settings"]["system"] == "human")
    assert person["scores"]["rouge1_loo"] == person["scores"]["rouge1"]
    assert len(person["outputs"]["by_reference"]["rouge1"]) == 3
    rows = {(row["metric"], *row["settings"].values()): row for row in outcome.metrics}
    for system in ("bart", "bart-dpr", "human"):
        own = [item for item in items if item["settings"]["system"] == system]
        for name in ("overall", "rouge2", "rougeL_mean"):
            values = [item["scores"][name] for item in own]
            interval = clustered_interval(values, [item["cluster"] for item in own], bounds=range_of(name))
            row = rows[name, system]
            assert row["value"] == pytest.approx(np.mean(values))
            assert (row["ci95"], row["n"], row["clusters"]) == ([interval.low, interval.high], 6, 3)
            assert row["task"] == "human-eval"
    stories = read_stories(tmp_path / "v1" / "test.jsonl")
    assert len(stories) == 3
    scipys = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    for kind, scipy in scipys.items():
        for subset, systems in (("model", ("bart", "bart-dpr")), ("human", ("human",))):
            own = [item for item in items if item["settings"]["system"] in systems]
            row = rows[kind, "rougeL", "overall", subset]
            expected = scipy(
                [item["scores"]["rougeL"] for item in own], [item["scores"]["overall"] for item in own]
            )[0]
            assert row["value"] == pytest.approx(expected)
            assert (row["task"], row["n"], row["clusters"]) == ("human-eval", len(own), 3)
            assert row["settings"] == {"of": "rougeL", "with": "overall", "summaries": subset}
