"""SQuALITY graded from predictions: the numbers of the run, with METEOR where WordNet is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ensue
from ensue.benchmarks.grading import open_board
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.wordnet import write_wordnet


@pytest.fixture
def place(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENSUE_WORDNET", str(write_wordnet(tmp_path / "wordnet")))
    ensue.run("squality", model="lead", data=data, output=tmp_path / "run", statistics="no", words=40)
    return tmp_path


def test_a_run_is_graded_as_it_was_judged(place: Path, data: Path) -> None:
    path = submitted("squality", place / "run")
    said = graded("squality", path, data)
    assert agree(ensue.Run(place / "run"), said) == {}
    assert {"rouge1", "rougeL_loo", "meteor", "words"} <= {row["metric"] for row in said["metrics"]}
    columns = open_board("squality", data).columns
    assert [column.metric for column in columns] == ["rouge1", "rouge2", "rougeL", "meteor"]
    first = columns[0].find(said["metrics"])
    assert first is not None
    assert (said["score"], said["notes"]) == (first["value"], [])


def test_without_wordnet_meteor_is_left_out_and_missed(
    place: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = submitted("squality", place / "run")
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("ENSUE_WORDNET")
    monkeypatch.setattr("ensue.text.wordnet._PLACES", (str(place / "nowhere"),))
    board = open_board("squality", data)
    found = board.grade(path)
    assert [column.metric for column in board.columns] == ["rouge1", "rouge2", "rougeL"]
    assert [note for note in found.notes if note.startswith("METEOR needs WordNet")]
    labels = ("--suite", "squality", "--labels", data)
    refused(here("grade", path, *labels, "--set", "metrics=rouge,meteor"), "METEOR needs WordNet")
    assert open_board("squality", data, settings={"metrics": "rouge"}).grade(path).notes == []


def test_what_cannot_be_graded_is_refused(place: Path, data: Path, tmp_path: Path) -> None:
    path = submitted("squality", place / "run")
    lines = read_lines(path)
    lines[0]["prediction"] = "x" * 20_001
    lines[1]["prediction"] = ["a", "list"]
    lines[2]["prediction"] = "half \ud83d a pair"
    lines[3]["prediction"] = " "
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(json.dumps(line) + "\n" for line in lines))
    problems = open_board("squality", data).validate(bad)
    assert [(one.line, one.problem) for one in problems] == [
        (1, "the summary has 20,001 characters, more than 20,000."),
        (2, 'the summary ["a", "list"] is not a text.'),
        (3, "the summary holds half of a surrogate pair, which is no character."),
    ]
    lines = read_lines(path)
    lines[3]["prediction"] = " "
    found = open_board("squality", data).grade(write_lines(bad, lines))
    assert found.notes == ["summaries that are empty, which score 0: 1"]
    labels = ("--suite", "squality", "--labels", data)
    refused(here("grade", path, *labels, "--set", "metrics=bertscore"), "BERTScore needs a model")
    refused(here("grade", path, *labels, "--set", "words=3"), "leave words out")
    refused(here("grade", path, *labels, "--tasks", "human-eval"), "not on people's ratings")
    ensue.run(
        "squality", model="human", data=data, output=tmp_path / "human", statistics="no", metrics="rouge"
    )
    refused(here("submit", "squality", tmp_path / "human"), "line 1: the item has no prediction")
