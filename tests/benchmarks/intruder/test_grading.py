"""The intruder graded from predictions: the numbers of the run rule by rule, from values, from pointing, or both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.benchmarks.grading import open_board
from ensue.benchmarks.grading.predictions import PredictionsBoard
from tests.benchmarks.grading.agreement import by_place, graded, submitted
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import document

RULES = ("following", "gain", "received", "ratio", "given", "surprisal")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intruder")
    rows = [
        {"id": f"d{n}", "sentences": document(n, 7 + n), "domain": ("news", "novels")[n % 2]}
        for n in range(8)
    ]
    write_lines(folder / "data.jsonl", rows)
    data = folder / "data.jsonl"
    ensue.run("intruder", model="random", data=data, output=folder / "run", encoder="none")
    return folder


def predicted(place: Path, rule: str = "gain") -> list[dict[str, Any]]:
    path = submitted("intruder", place / "run", "--set", f"rule={rule}", "--output", place / f"{rule}.jsonl")
    return read_lines(path)


def rows_of(place: Path, rule: str) -> dict[str, Any]:
    """The run's own rows of one rule, and those of none but of whole texts, of which a submission says nothing."""
    rows = [
        row
        for row in ensue.Run(place / "run").results["metrics"]
        if row["settings"].get("rule", rule) == rule and row["metric"] != "accuracy"
    ]
    return by_place(rows, "test", ("rule",))


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_of_a_run_is_graded_as_it_was_judged(place: Path, rule: str) -> None:
    predicted(place, rule)
    said = graded("intruder", place / f"{rule}.jsonl", place / "data.jsonl")
    wanted = rows_of(place, rule)
    assert by_place(said["metrics"], "test", ()) == wanted
    assert {json.loads(one)[0] for one in wanted} == {"intruder", "intruder/news", "intruder/novels"}
    main = json.dumps(["intruder", "hit_rate", {"kind": "random"}], sort_keys=True)
    assert said["score"] == wanted[main]["value"]


def test_values_alone_give_what_needs_no_threshold_and_pointing_alone_the_rest(
    place: Path, tmp_path: Path
) -> None:
    lines, wanted = predicted(place), rows_of(place, "gain")
    threshold = ("hit_rate_at", "false_alarms")
    for name, kept in (
        ("values", lambda metric: metric not in threshold),
        ("flagged", lambda metric: metric in (*threshold, "chance")),
    ):
        few = [{**line, "prediction": {name: line["prediction"][name]}} for line in lines]
        if name == "values":  # which may also stand by themselves
            few = [{**line, "prediction": line["prediction"][name]} for line in lines]
        said = graded("intruder", write_lines(tmp_path / f"{name}.jsonl", few), place / "data.jsonl")
        found = by_place(said["metrics"], "test", ())
        assert found == {one: row for one, row in wanted.items() if kept(json.loads(one)[1])}
        assert (said["score"] is None) == (name == "flagged")


def test_what_is_handed_in_tells_no_place_and_a_board_has_the_columns_of_its_kinds(place: Path) -> None:
    board = open_board("intruder", place / "data.jsonl", settings={"kinds": "hard,swapped"})
    assert [(one.metric, one.settings["kind"], one.main) for one in board.columns] == [
        ("hit_rate", "hard", True),
        ("hit_rate_at", "hard", False),
        ("hit_rate", "swapped", False),
        ("hit_rate_at", "swapped", False),
        ("false_alarms", "untouched", False),
    ]
    for line in predicted(place):
        assert set(line) == {"id", "content", "prediction"}
        assert set(line["prediction"]) == {"values", "flagged"}


def test_the_digest_of_a_version_is_that_of_its_sentences_alone(place: Path) -> None:
    from ensue.benchmarks.base import content_of

    rows = {row["id"]: row["sentences"] for row in read_lines(place / "data.jsonl")}
    board = open_board("intruder", place / "data.jsonl")
    assert isinstance(board, PredictionsBoard)
    items = {item["id"]: item for item in ensue.Run(place / "run").items}
    assert board.questions["d3#untouched"].asked == content_of(tuple(rows["d3"]))
    outputs = items["d3#random"]["outputs"]
    changed = list(rows["d3"])
    changed[outputs["places"][0]] = outputs["sentences"][0]
    assert board.questions["d3#random"].asked == items["d3#random"]["asked"] == content_of(tuple(changed))


def test_a_run_of_several_rules_is_asked_for_one_and_other_versions_are_refused(place: Path) -> None:
    done = here("submit", "intruder", place / "run")
    assert "pick one with --set rule=following" in done.err
    assert done.code == 2
    predicted(place)
    labels = ("--suite", "intruder", "--labels", place / "data.jsonl")
    other = here("grade", place / "gain.jsonl", *labels, "--set", "seed=3")
    assert other.code == 2
    assert "items are of other texts than those of this board" in other.err or "there is no item" in other.err
    refused(here("grade", place / "gain.jsonl", *labels[:3], place / "none"), "is not there")


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        (7, "the prediction is not a JSON object."),
        ({}, "there is neither 'values' nor 'flagged'."),
        ({"value": [1]}, "the key 'value' is none of values, flagged."),
        ({"values": 3}, "the values 3 are not a list."),
        ([None, 1.0], "2 values, where the text has 7 sentences."),
        ([0.5] * 7, "the first value is 0.5; it is null, since nothing precedes the first sentence."),
        ([None] * 7, "the value null is not a finite number."),
        ({"flagged": 0}, "the sentence 0 that stands out is none of 1 to 6, counted from 0, or null."),
        ({"flagged": True}, "the sentence true that stands out is none of 1 to 6, counted from 0, or null."),
        (
            {"flagged": 2},
            "it gives flagged where d0#untouched gives values and flagged; give the same for all.",
        ),
    ],
    ids=["number", "empty", "key", "no list", "short", "first", "nulls", "zero", "true", "mixed"],
)
def test_what_is_no_prediction_is_named(place: Path, tmp_path: Path, prediction: Any, words: str) -> None:
    lines = predicted(place)
    lines[1]["prediction"] = prediction
    board = open_board("intruder", place / "data.jsonl")
    assert board.validate(write_lines(tmp_path / "p.jsonl", lines)) == [("p.jsonl", 2, words)]
