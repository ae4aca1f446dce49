"""Reading the evaluation, its tables, and metrics held against it, by numpy and scipy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ensue.benchmarks.squality.data import read_stories
from ensue.benchmarks.squality.human_eval import (
    Rated,
    find_human_eval,
    preferred,
    ranked_first,
    rating_table,
    read_human_eval,
)
from ensue.benchmarks.squality.judged import (
    KINDS,
    mean_and_max,
    references_of,
    summary_correlations,
    system_correlations,
)
from ensue.errors import EnsueError
from tests.benchmarks.squality.invented import ANSWERS, evaluation_row, story_row, write_rows


@pytest.fixture
def rated(tmp_path: Path) -> list[Rated]:
    rows = [evaluation_row(str(number), shift=float(number)) for number in range(1, 5)]
    write_rows(tmp_path / "human-eval" / "all-responses.jsonl", *rows)
    return read_human_eval(find_human_eval(tmp_path))


def test_the_table_is_the_mean_and_deviation_of_mean_ratings(rated: list[Rated]) -> None:
    assert len(rated) == 4 * 2 * 3
    rows = {(row.system, row.property): row for row in rating_table(rated)}
    means = [np.mean([30 + key, 45, 60]) - shift for shift in range(1, 5) for key in range(2)]
    assert rows["bart-dpr", "coverage"].mean == pytest.approx(np.mean(means))
    assert rows["bart-dpr", "coverage"].deviation == pytest.approx(np.std(means))
    assert rows["human", "overall"].n == 8
    assert preferred(rated, "bart-dpr", "bart") == 1.0
    assert preferred(rated, "bart", "bart") == 0.5
    assert ranked_first(rated, "human") == 1.0
    assert rated[0].reviews[0].marks[0].comments == ("it was half full",)
    assert (rated[0].question, rated[-1].question) == (1, 2)
    with pytest.raises(EnsueError, match="both 'bart' and 'led'"):
        preferred(rated, "bart", "led")
    with pytest.raises(EnsueError, match="no summary of 'led'"):
        ranked_first(rated, "led")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda one: one["reviews"].pop(), "there are 2 reviews where 3 were expected"),
        (lambda one: one["reviews"][1].update(worker_id="0"), "one reviewer is there twice"),
        (lambda one: one["reviews"][2].pop("selection-rating"), "reviews 3: there is no 'selection-rating'"),
        (lambda one: one["reviews"][2].update({"overall-rating": 101}), "101 is not between 0 and 100"),
        (lambda one: one["reviews"][2].update({"overall-rating": "nan"}), "not between 0 and 100"),
        (lambda one: one.update(response=" "), "'response' is empty"),
        (lambda one: one["reviews"][0].update(annotations=[{"annotation": 3}]), "'annotation' is not a list"),
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


def test_correlations_are_scipys(rated: list[Rated]) -> None:
    values = np.random.default_rng(4).random(len(rated)).tolist()
    reference = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
    for kind in KINDS:
        for row in summary_correlations(rated, {"made-up": values}, rated_property="coverage", kind=kind):
            chosen = [
                (value, one.rating("coverage"))
                for value, one in zip(values, rated, strict=True)
                if row.subset == "all" or (one.system == "human") == (row.subset == "human")
            ]
            assert row.n == len(chosen)
            assert row.value == pytest.approx(reference[kind](*zip(*chosen, strict=True)).statistic)
            assert row.low is not None
            assert row.high is not None
            assert row.low <= row.value <= row.high


def test_systems_are_compared_by_their_means(rated: list[Rated]) -> None:
    values = [float(len(one.text)) for one in rated]
    model, human, every = system_correlations(rated, {"length": values})
    systems = ("bart", "bart-dpr", "human")
    means = [np.mean([v for v, one in zip(values, rated, strict=True) if one.system == s]) for s in systems]
    ratings = [np.mean([one.rating("overall") for one in rated if one.system == s]) for s in systems]
    assert every.value == pytest.approx(stats.pearsonr(means, ratings).statistic)
    assert (model.n, model.value) == (2, pytest.approx(1.0))
    assert (human.n, human.value) == (1, None)


def test_a_constant_metric_has_no_correlation_and_none_is_ever_nan(rated: list[Rated]) -> None:
    for row in summary_correlations(rated, {"constant": [1.0] * len(rated)}):
        assert (row.value, row.low, row.high, row.told_from_zero) == (None, None, None, False)
    for wrong in ([0.5], [float("nan")] * len(rated)):
        with pytest.raises(EnsueError, match="'wrong' needs one number for each of the 24"):
            summary_correlations(rated, {"wrong": wrong})


def test_mean_and_max_over_references() -> None:
    table = np.random.default_rng(1).random((9, 4))
    found = mean_and_max(table.tolist())
    assert found == pytest.approx((table.mean(), table.max(axis=1).mean()))
    assert found.difference == pytest.approx(found.max - found.mean)
    with pytest.raises(EnsueError, match="at least one reference"):
        mean_and_max([[0.5], []])
