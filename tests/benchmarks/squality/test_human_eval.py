"""Reading the evaluation, its tables, and metrics held against it, by numpy and scipy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.squality.data import Question, Response, Story, read_stories
from ensue.benchmarks.squality.human_eval import (
    KINDS,
    Rated,
    correlation_rows,
    find_human_eval,
    rating_rows,
    read_human_eval,
    references_of,
)
from ensue.benchmarks.squality.systems import named
from ensue.benchmarks.squality.task import TASK
from ensue.errors import EnsueError
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of
from tests.benchmarks.squality.invented import ANSWERS, asked, evaluation_row, story_row, write_rows

SCIPYS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.fixture
def rated(tmp_path: Path) -> list[Rated]:
    rows = [evaluation_row(str(number), shift=float(number)) for number in range(1, 5)]
    write_rows(tmp_path / "human-eval" / "all-responses.jsonl", *rows)
    return read_human_eval(find_human_eval(tmp_path))


def one_rated(story: str, system: str, overall: float, text: str = "A text.", correct: float = 50.0) -> Rated:
    return Rated(story, 1, system, text, ({"overall": overall, "correctness": correct, "coverage": 1.0},))


def test_the_table_is_the_mean_and_deviation_of_mean_ratings(rated: list[Rated]) -> None:
    assert len(rated) == 4 * 2 * 3
    rows = {(row["system"], row["property"]): row for row in rating_rows(rated)}
    means = [np.mean([30 + key, 45, 60]) - shift for shift in range(1, 5) for key in range(2)]
    assert rows["bart-dpr", "coverage"]["mean"] == pytest.approx(np.mean(means))
    assert rows["bart-dpr", "coverage"]["deviation"] == pytest.approx(np.std(means))
    assert rows["human", "overall"]["n"] == 8
    assert (rated[0].question, rated[-1].question) == (1, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["reviews"].pop(), "there are 2 reviews where 3 were expected"),
        (lambda one: one["reviews"][1].update(worker_id="0"), "one reviewer is there twice"),
        (lambda one: one["reviews"][2].pop("selection-rating"), "reviews 3: there is no 'selection-rating'"),
        (lambda one: one["reviews"][2].update({"overall-rating": 101}), "101 is not between 0 and 100"),
        (lambda one: one["reviews"][2].update({"overall-rating": "nan"}), "not between 0 and 100"),
        (lambda one: one.update(response=" "), "'response' is empty"),
        (
            lambda one: one.update(
                overall={"correctness-rating": 40, "selection-rating": 21, "overall-rating": 21}
            ),
            "the mean correctness-rating is 40 where the reviews' is 21",
        ),
    ],
)
def test_faults_name_file_line_and_place(tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    row = copy.deepcopy(evaluation_row("2"))
    change(row["questions"]["1"]["bart"])
    path = write_rows(tmp_path / "all-responses.jsonl", evaluation_row("1"), row)
    with pytest.raises(EnsueError, match=said) as caught:
        read_human_eval(path)
    assert f"{path}, line 2, questions, 1, bart" in str(caught.value)


def test_other_faults_of_the_file(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "all-responses.jsonl", evaluation_row("1"), evaluation_row("1"))
    with pytest.raises(EnsueError, match="line 2: story 1 was there before"):
        read_human_eval(path)
    row = evaluation_row("1")
    row["questions"]["first"] = row["questions"]["0"]
    with pytest.raises(EnsueError, match="the question 'first' is not a number"):
        read_human_eval(write_rows(path, row))
    with pytest.raises(EnsueError, match=r"no human-eval/all-responses.jsonl"):
        find_human_eval(tmp_path / "elsewhere")


def test_references_leave_a_persons_own_summary_out(tmp_path: Path, rated: list[Rated]) -> None:
    stories = read_stories(
        write_rows(tmp_path / "test.jsonl", *(story_row(str(number)) for number in range(1, 5)))
    )
    found = references_of(rated, stories)
    assert found[0] == ANSWERS[0]
    assert found[2] == (ANSWERS[0][0], *ANSWERS[0][2:])
    with pytest.raises(EnsueError, match="Question 1 of story 1 was rated but is not among the stories"):
        references_of(rated, stories[1:])
    with pytest.raises(EnsueError, match="is none of its references"):
        references_of([rated[2]._replace(text="Something else.")], stories)


def test_a_persons_own_text_is_left_out_whatever_its_spaces() -> None:
    question = Question(1, "What?", tuple(Response("w", "", text) for text in ("abc", "abd", "xyz")))
    stories = [Story("s1", "", "", "A story.", (question,))]
    (found,) = references_of([one_rated("s1", "human", 9.0, text=" abd\n")], stories)
    assert found == ("abc", "xyz")
    (whole,) = references_of([one_rated("s1", "bart", 9.0, text="abd")], stories)
    assert whole == ("abc", "abd", "xyz")


def test_correlations_are_scipys(rated: list[Rated]) -> None:
    values = np.random.default_rng(4).random(len(rated)).tolist()
    for kind in KINDS:
        rows = list(correlation_rows(rated, {"made-up": values}, kind))
        assert [row["settings"]["summaries"] for row in rows] == ["model", "human", "all"]
        for row in rows:
            subset = row["settings"]["summaries"]
            chosen = [
                (value, one.rating("overall"))
                for value, one in zip(values, rated, strict=True)
                if subset == "all" or (one.system == "human") == (subset == "human")
            ]
            assert row["n"] == len(chosen)
            assert row["value"] == pytest.approx(SCIPYS[kind](*zip(*chosen, strict=True)).statistic)
            low, high = row["ci95"]
            assert low is not None
            assert high is not None
            assert low <= row["value"] <= high


def test_correlations_are_with_the_overall_rating_story_by_story() -> None:
    generator = np.random.default_rng(2)
    held, values = [], []
    for story in range(8):
        for system in ("bart", "bart-dpr", "human"):
            overall, correct = generator.normal(50, 10, 2)
            held.append(one_rated(f"s{story}", system, overall, correct=correct))
            values.append(overall / 10 + generator.normal())

    def rows(rated: list[Rated], seed: int = 1) -> dict[str, Any]:
        found = correlation_rows(rated, {"m": values}, "pearson", seed)
        return {row["settings"]["summaries"]: row for row in found}

    found = rows(held)
    assert list(found) == ["model", "human", "all"]
    assert (found["all"]["settings"]["of"], found["all"]["metric"], found["all"]["n"]) == ("m", "pearson", 24)
    ratings = [one.rating("overall") for one in held]
    assert found["all"]["value"] == pytest.approx(stats.pearsonr(values, ratings)[0])
    places = [n for n, one in enumerate(held) if one.system != "human"]
    assert (found["model"]["n"], found["human"]["n"]) == (16, 8)
    assert found["model"]["value"] == pytest.approx(
        stats.pearsonr([values[n] for n in places], [ratings[n] for n in places])[0]
    )
    assert [row["ci95"] for row in rows(held, 2).values()] != [row["ci95"] for row in found.values()]
    # Two summaries of one story in each round or none: other clusters, another interval.
    other = rows([one._replace(story=f"{one.story}-{one.system}") for one in held])
    assert other["all"]["ci95"] != found["all"]["ci95"]
    assert other["all"]["value"] == found["all"]["value"]


def test_what_cannot_correlate_has_no_row(rated: list[Rated]) -> None:
    for kind in KINDS:
        assert list(correlation_rows(rated, {"constant": [1.0] * len(rated)}, kind)) == []
        assert list(correlation_rows(rated[:1], {"single": [1.0]}, kind)) == []


def test_the_human_evaluation_field_by_field(tmp_path: Path) -> None:
    write_rows(tmp_path / "v1" / "test.jsonl", story_row("1"), story_row("2"), story_row("3"))
    write_rows(
        tmp_path / "human-eval" / "all-responses.jsonl", *(evaluation_row(str(n), 2.0 * n) for n in (1, 2, 3))
    )
    prepared: Any = TASK.prepare("human-eval", str(tmp_path), None, 4, asked(metrics="rouge"))
    outcome = prepared.evaluate(named("human"), RunContext())
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

    for kind, scipy in SCIPYS.items():
        for subset, systems in (("model", ("bart", "bart-dpr")), ("human", ("human",))):
            own = [item for item in items if item["settings"]["system"] in systems]
            row = rows[kind, "rougeL", "overall", subset]
            expected = scipy(
                [item["scores"]["rougeL"] for item in own], [item["scores"]["overall"] for item in own]
            )[0]
            assert row["value"] == pytest.approx(expected)
            assert (row["task"], row["n"], row["clusters"]) == ("human-eval", len(own), 3)
            assert row["settings"] == {"of": "rougeL", "with": "overall", "summaries": subset}
