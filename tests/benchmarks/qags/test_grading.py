"""QAGS's sets graded from predictions: the numbers of the run for whichever of its metrics was submitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ensue
from ensue.benchmarks.grading import open_board
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.benchmarks.qags.small_sets import write_sets
from tests.support.command import here, read_lines, refused, write_lines

MEASURE = "overlap-2"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("qags")
    write_sets(folder / "data")
    ensue.run("qags", model="source-overlap", data=folder / "data", output=folder / "run")
    return folder


@pytest.fixture(scope="module")
def file(place: Path) -> Path:
    return submitted("qags", place / "run", "--set", f"measure={MEASURE}")


def test_a_run_is_graded_as_it_was_judged(place: Path, file: Path) -> None:
    refused(here("submit", "qags", place / "run"), "measure: overlap-1", "--set measure=overlap-1")
    said = graded("qags", file, place / "data")
    run = ensue.Run(place / "run")
    own = [row for row in run.results["metrics"] if row["settings"].get("measure", MEASURE) == MEASURE]
    run.results["metrics"] = own
    # The one row more is the score of the board: the mean over sets, each by the figure that stands for it.
    (total,) = agree(run, said, ("measure",)).values()
    board = open_board("qags", place / "data")
    cells = {column.task: column.find(said["metrics"]) for column in board.columns}
    assert set(cells) == {"QAGS", "cnndm", "xsum", "falke", "summeval", "realsumm"}
    values = [cell["value"] for name, cell in cells.items() if cell and name != "QAGS"]
    assert total["value"] == said["score"] == pytest.approx(np.mean(values))
    assert said["covers"] == "5 of 5 sets"
    assert cells["falke"] is not None
    assert cells["falke"]["metric"] == "accuracy"


def test_one_set_and_every_human_score(place: Path, file: Path, tmp_path: Path) -> None:
    lines = [line for line in read_lines(file) if line["id"].startswith("summeval")]
    path = write_lines(tmp_path / "p.jsonl", lines)
    found = open_board("qags", place / "data", tasks=["summeval"], settings={"human": "all"}).grade(path)
    assert {row["settings"]["human"] for row in found.metrics if row["task"] == "summeval"} == {
        "coherence",
        "consistency",
        "fluency",
        "relevance",
    }
    refused(here("grade", path, "--suite", "qags", "--labels", place, "--set", "seed=1"), "human only")


def test_a_metric_that_tells_nothing_apart_has_no_score(place: Path, file: Path, tmp_path: Path) -> None:
    lines = [{**line, "prediction": 0.5} for line in read_lines(file)]
    found = open_board("qags", place / "data").grade(write_lines(tmp_path / "p.jsonl", lines))
    assert found.score is None
    assert any("constant values" in note for note in found.notes)


def test_what_is_no_score_is_named(place: Path, file: Path, tmp_path: Path) -> None:
    lines = read_lines(file)
    for number, prediction in enumerate(("much", None, [0.5], float("inf"), True)):
        lines[number]["prediction"] = prediction
    problems = open_board("qags", place / "data").validate(write_lines(tmp_path / "p.jsonl", lines))
    assert [(one.line, one.problem) for one in problems] == [
        (1, "the score 'much' is not a finite number."),
        (2, "the score null is not a finite number."),
        (3, "the score [0.5] is not a finite number."),
        (4, "Infinity is not a JSON value."),
        (5, "the score true is not a finite number."),
    ]
