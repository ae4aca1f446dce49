"""Rows: metrics, scores of tasks, and the benchmark's mean with what it covers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.nlu.judging import JudgedSplit, judge
from ensue.benchmarks.nlu.scores import SCORE, rows
from ensue.report.results import MetricRow
from tests.benchmarks.nlu.answered import SPECS, labelled, spec


def _judged(
    name: str, suite: str = "glue", split: str = "dev", seed: int = 0, **settings: Any
) -> JudgedSplit:
    data, answered, _, _ = labelled(spec(name, suite), 100, seed=seed, split=split, **settings)
    found = judge(data, answered, split)
    assert found is not None
    assert found.rows == 100
    # As if the hundred were all there is.
    return replace(found, rows=found.spec.sizes.get(split, 100))


def _scores(found: list[MetricRow], task: str) -> list[MetricRow]:
    return [row for row in found if (row["task"], row["metric"]) == (task, SCORE)]


def test_a_benchmark_has_as_many_tasks_as_its_specs_say() -> None:
    for suite, tasks in {"glue": 9, "superglue": 8}.items():
        assert sum(one.in_score for one in SPECS[suite].values()) == tasks


def test_rows_of_a_run() -> None:
    judged = [_judged("MRPC"), _judged("CoLA", seed=1), _judged("diagnostic", seed=2)]
    found = rows(judged)
    assert [(row["task"], row["metric"]) for row in found] == [
        ("MRPC", "accuracy"),
        ("MRPC", "f1"),
        ("CoLA", "mcc"),
        ("diagnostic", "r3"),
        ("MRPC", "score"),
        ("CoLA", "score"),
        ("GLUE", "score"),
    ]
    accuracy, f1, mcc, _, mrpc, cola, whole = found
    assert mrpc["value"] == pytest.approx((accuracy["value"] + f1["value"]) / 2)
    assert cola["value"] == mcc["value"]
    assert whole["value"] == pytest.approx((mrpc["value"] + cola["value"]) / 2)
    assert whole["settings"] == {"split": "dev", "covers": "2 of 9 tasks", "tasks": "MRPC,CoLA"}
    assert (whole["n"], mrpc["n"], accuracy["settings"]) == (200, 100, {"split": "dev"})


def test_the_benchmarks_interval_is_that_of_independent_tasks() -> None:
    judged = [_judged(name, seed=seed) for seed, name in enumerate(["CoLA", "MRPC", "RTE", "QNLI"])]
    (whole,) = _scores(rows(judged), "GLUE")
    low, high = whole["ci95"]
    assert low is not None
    assert high is not None
    spreads = [np.std(one.score.draws) for one in judged if one.score.draws is not None]
    expected = 2 * 1.96 * np.sqrt(np.sum(np.square(spreads))) / 4
    assert high - low == pytest.approx(expected, rel=0.1)
    assert low < whole["value"] < high


def test_mnli_counts_once_with_both_sections() -> None:
    judged = [
        _judged("MNLI"),
        _judged("MNLI", split="dev-mismatched", seed=1),
        _judged("RTE", seed=2),
    ]
    found = rows(judged)
    (mnli,) = _scores(found, "MNLI")
    matched, mismatched, rte = (one.score.value for one in judged)
    assert mnli["value"] == pytest.approx((matched + mismatched) / 2)
    assert mnli["settings"] == {"split": "dev", "sections": "dev,dev-mismatched"}
    assert mnli["n"] == 200
    (whole,) = _scores(found, "GLUE")
    assert whole["value"] == pytest.approx((mnli["value"] + rte) / 2)
    assert whole["settings"]["covers"] == "2 of 9 tasks"
    assert [row["settings"]["split"] for row in found if row["metric"] == "accuracy"][:2] == [
        "dev",
        "dev-mismatched",
    ]
    (alone,) = _scores(rows(judged[:1]), "MNLI")
    assert alone["settings"] == {"split": "dev", "part": "9,815 of 19,647 rows"}
    (second,) = _scores(rows(judged[1:2]), "MNLI")
    assert second["settings"] == {
        "split": "dev",
        "sections": "dev-mismatched",
        "part": "9,832 of 19,647 rows",
    }


def test_dev_and_test_are_never_mixed() -> None:
    found = rows([_judged("RTE"), _judged("RTE", split="test", seed=1), _judged("CoLA", seed=2)])
    assert [(row["settings"]["split"], row["settings"]["covers"]) for row in _scores(found, "GLUE")] == [
        ("dev", "2 of 9 tasks"),
        ("test", "1 of 9 tasks"),
    ]


def test_suites_are_kept_apart_although_both_have_an_rte() -> None:
    found = rows([_judged("RTE"), _judged("RTE", "superglue", seed=1)])
    assert [row["task"] for row in found if row["metric"] == SCORE] == ["RTE", "RTE", "GLUE", "SuperGLUE"]


def test_ways_that_all_tasks_share_have_a_row_each() -> None:
    judged = [_judged(name, seed=run, run=run, mode="train") for name in ("RTE", "CoLA") for run in (1, 2)]
    found = _scores(rows(judged), "GLUE")
    assert [row["settings"] for row in found] == [
        {"split": "dev", "run": run, "mode": "train", "covers": "2 of 9 tasks", "tasks": "RTE,CoLA"}
        for run in (1, 2)
    ]
    assert found[0]["value"] == pytest.approx((judged[0].score.value + judged[2].score.value) / 2)


def test_templates_that_differ_by_task_are_averaged_within_it() -> None:
    judged = [
        _judged("RTE", seed=0, template="question", shots=0),
        _judged("RTE", seed=1, template="statement", shots=0),
        _judged("CoLA", seed=2, template="grammar", shots=0),
    ]
    (whole,) = _scores(rows(judged), "GLUE")
    first, second, third = (one.score for one in judged)
    assert whole["value"] == pytest.approx(((first.value + second.value) / 2 + third.value) / 2)
    assert whole["settings"] == {
        "split": "dev",
        "shots": 0,
        "covers": "2 of 9 tasks",
        "tasks": "RTE,CoLA",
        "averaged": "RTE",
    }
    assert whole["n"] == 200
    low, high = whole["ci95"]
    assert low is not None
    assert high is not None

    def deviation(figure: Drawn) -> float:
        assert figure.draws is not None
        return float(np.std(figure.draws))

    # Answers to the same examples are taken to vary together, so averaging them narrows nothing.
    spread = np.hypot((deviation(first) + deviation(second)) / 2, deviation(third)) / 2
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_a_split_judged_in_part_is_said_in_the_score_and_in_what_the_benchmark_covers() -> None:
    cola, boolq = _judged("CoLA"), _judged("BoolQ", "superglue", seed=1)
    few = replace(boolq, rows=32, instead="of the training set")
    copa = replace(_judged("COPA", "superglue", seed=2), rows=99)
    found = rows([few, _judged("CB", "superglue", seed=3), copa, replace(cola, rows=1_043)])
    parts = {row["task"]: row["settings"].get("part") for row in found if row["metric"] == SCORE}
    assert parts["BoolQ"] == "32 rows of the training set for 3,270"
    assert parts["COPA"] == "99 of 100 rows"
    assert (parts["CB"], parts["CoLA"]) == (None, None)
    (whole,) = _scores(found, "SuperGLUE")
    assert whole["settings"]["covers"] == (
        "1 of 8 tasks whole, BoolQ in part (32 rows of the training set for 3,270), "
        "COPA in part (99 of 100 rows)"
    )
    (glue,) = _scores(found, "GLUE")
    assert glue["settings"]["covers"] == "1 of 9 tasks"
    assert "part" not in _scores(rows([replace(cola, rows=1_044)]), "CoLA")[0]["settings"]


def test_rows_held_out_of_the_training_set_are_a_part() -> None:
    found = rows([replace(_judged("QQP", split="held-out"), rows=40)])
    assert _scores(found, "QQP")[0]["settings"]["part"] == "40 rows held out of the training set"
    assert _scores(found, "GLUE")[0]["settings"]["covers"] == (
        "0 of 9 tasks whole, QQP in part (40 rows held out of the training set)"
    )
