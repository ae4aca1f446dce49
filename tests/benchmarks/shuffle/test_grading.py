"""The Shuffle Test graded from predictions: the numbers of the run, from log-likelihoods or from preferences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ensue
from ensue.benchmarks.grading import open_board
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.support.command import here, read_lines, refused, write_lines
from tests.support.corpus import document

SETTINGS = ("--set", "block_size=1,3", "--set", "shuffles=4")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shuffle")
    rows = [
        {"id": f"d{n}", "sentences": document(n, 6 + n), "domain": ("news", "novels")[n % 2]}
        for n in range(5)
    ]
    write_lines(folder / "data.jsonl", rows)
    ensue.run(
        "shuffle",
        model="random",
        data=folder / "data.jsonl",
        output=folder / "run",
        block_size=[1, 3],
        shuffles=4,
    )
    return folder


def lines_of(place: Path) -> list[dict[str, Any]]:
    return read_lines(submitted("shuffle", place / "run"))


def test_a_run_is_graded_as_it_was_judged(place: Path) -> None:
    path = submitted("shuffle", place / "run")
    said = graded("shuffle", path, place / "data.jsonl", *SETTINGS)
    assert agree(ensue.Run(place / "run"), said) == {}
    assert {row["task"] for row in said["metrics"]} == {"shuffle", "shuffle/news", "shuffle/novels"}
    (first,) = [
        row["value"]
        for row in said["metrics"]
        if (row["task"], row["metric"], row["settings"]) == ("shuffle", "accuracy", {"block_size": 1})
    ]
    assert said["score"] == first


def test_preferences_alone_give_the_same_accuracy(place: Path, tmp_path: Path) -> None:
    preferred = {"1.0": "original", "0.0": "shuffled"}
    items = {item["id"]: item["scores"] for item in ensue.Run(place / "run").items}
    lines = [
        {**line, "prediction": "same" if scores["ties"] else preferred[str(scores["accuracy"])]}
        for line in lines_of(place)
        for scores in [items[line["id"]]]
    ]
    said = graded("shuffle", write_lines(tmp_path / "p.jsonl", lines), place / "data.jsonl", *SETTINGS)
    found = {row["metric"] for row in ensue.Run(place / "run").results["metrics"]}
    assert {"accuracy_authors", "ties"} < found
    agree(ensue.Run(place / "run"), said, without=[name for name in found if "per_token" in name])
    assert {row["metric"] for row in said["metrics"]} == {name for name in found if "per_token" not in name}


def test_another_seed_makes_other_pairs(place: Path) -> None:
    path = submitted("shuffle", place / "run")
    labels = ("--suite", "shuffle", "--labels", place / "data.jsonl", *SETTINGS)
    done = here("grade", path, *labels, "--set", "seed=1")
    assert done.code == 2
    (problem,) = done.err.splitlines()[1:]
    assert "of 37 items are of other texts than those of this board" in problem
    refused(here("grade", path, *labels, "--set", "seed=x"), "Invalid seed=x: expected a whole number from 0")
    refused(here("grade", path, *labels[:3], place / "none"), "is not there")


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        ("first", "the preference 'first' is none of original, shuffled, same."),
        (7, "the prediction is not a JSON object."),
        ({"original": {"logprob": -1}}, "there is no 'shuffled'."),
        ({"original": {"logprob": -1}, "shuffled": -2}, "shuffled is not a JSON object."),
        (
            {"original": {"logprob": "-inf"}, "shuffled": {"logprob": -2}},
            "the logprob '-inf' is not a finite number.",
        ),
        (
            {"original": {"logprob": -1, "logprob_per_token": -1}, "shuffled": {"logprob": -2}},
            "only one of the two texts has 'logprob_per_token'.",
        ),
        (
            {"original": {"logprob": -1}, "shuffled": {"logprob": -2}},
            "only some pairs have logprob_per_token, of this and d0#k1#0 one; give it for all or none.",
        ),
    ],
    ids=["preference", "number", "half", "no object", "infinite", "one mean", "mixed"],
)
def test_what_is_no_prediction_is_named(place: Path, tmp_path: Path, prediction: Any, words: str) -> None:
    lines = lines_of(place)
    lines[2]["prediction"] = prediction
    board = open_board("shuffle", place / "data.jsonl", settings={"block_size": "1,3", "shuffles": "4"})
    assert board.validate(write_lines(tmp_path / "p.jsonl", lines)) == [("p.jsonl", 3, words)]
