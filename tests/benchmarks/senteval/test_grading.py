"""SentEval graded from predictions: the numbers of the run, labels and similarities alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ensue
from ensue.benchmarks.grading import open_board
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.benchmarks.senteval.folders import WordEncoder, write_downstream
from tests.support.command import read_lines, write_lines

WAYS = ("protocol", "layer")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("senteval")
    write_downstream(folder / "data" / "downstream")
    ensue.run(
        "senteval", model=WordEncoder(), data=folder / "data", output=folder / "run", protocol="converged"
    )
    return folder


def test_a_run_is_graded_as_it_was_judged(place: Path) -> None:
    path = submitted("senteval", place / "run")
    said = graded("senteval", path, place / "data")
    beside = agree(ensue.Run(place / "run"), said, WAYS)
    # The one row more is the score of the board: the mean over tasks, each by its own metric.
    (total,) = beside.values()
    board = open_board("senteval", place / "data")
    cells = [column.find(said["metrics"]) for column in board.columns]
    assert cells[0] is not None
    assert said["score"] == total["value"] == cells[0]["value"]
    assert total["value"] == pytest.approx(np.mean([cell["value"] for cell in cells[1:] if cell]))
    assert len(cells) == 17
    assert said["covers"] == "16 of 26 tasks"


def test_dev_has_the_tasks_that_have_answers_there(place: Path) -> None:
    path = submitted("senteval", place / "run", split="dev")
    said = graded("senteval", path, place / "data", split="dev")
    run = ensue.Run(place / "run")
    # By nested folds the dev accuracy is a mean over folds without answers of its own; groups then lack those tasks.
    nested = ("MR", "CR", "MPQA", "SUBJ", "SC", "SSS")
    run.results["metrics"] = [row for row in run.results["metrics"] if row["task"] not in nested]
    agree(run, said, WAYS, "dev")
    assert {row["task"] for row in said["metrics"]} >= {"SST2", "TREC", "MRPC", "STSBenchmark"}


def test_what_is_no_label_and_no_number_is_named(place: Path, tmp_path: Path) -> None:
    lines = read_lines(submitted("senteval", place / "run"))
    places = {line["id"]: number for number, line in enumerate(lines, 1)}
    trec, sts = (next(id for id in places if id.startswith(name)) for name in ("TREC/", "STS12/"))
    for line in lines:
        line["prediction"] = {trec: "COLOUR", sts: "1e999"}.get(line["id"], line["prediction"])
    problems = open_board("senteval", place / "data").validate(write_lines(tmp_path / "p.jsonl", lines))
    assert [(one.line, one.problem) for one in problems] == [
        (places[sts], "the prediction '1e999' is not a finite number."),
        (places[trec], "the label 'COLOUR' is none of ABBR, DESC, ENTY, HUM, LOC, NUM."),
    ]
