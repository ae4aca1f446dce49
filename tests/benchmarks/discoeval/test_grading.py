"""DiscoEval graded from predictions: the numbers of the run, and what is wrong with a file named by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ensue
from ensue.benchmarks.grading import open_board
from tests.benchmarks.discoeval.folders import write_suite, write_text
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.benchmarks.senteval.folders import WordEncoder
from tests.support.command import here, read_lines, refused, write_lines

WAYS = ("protocol", "layer", "context", "hidden")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("discoeval")
    write_suite(folder / "data")
    ensue.run(
        "discoeval", model=WordEncoder(), data=folder / "data", output=folder / "run", protocol="converged"
    )
    return folder


@pytest.fixture(scope="module")
def file(place: Path) -> Path:
    return submitted("discoeval", place / "run")


@pytest.mark.parametrize("split", ["test", "dev"])
def test_a_run_is_graded_as_it_was_judged(place: Path, split: str) -> None:
    path = submitted("discoeval", place / "run", split=split)
    said = graded("discoeval", path, place / "data", split=split)
    run = ensue.Run(place / "run")
    beside = agree(run, said, WAYS, split)
    assert beside == {}
    (average,) = [row for row in said["metrics"] if row["task"] == "average"]
    assert said["score"] == average["value"]
    assert said["covers"] == "9 of 12 tasks"


def test_layers_are_chosen_and_several_classifiers_give_a_list(tmp_path: Path) -> None:
    write_text(tmp_path / "data" / "SSP" / "abs", 2, 1)
    output = tmp_path / "run"
    run = ensue.run(
        "discoeval/SSP", model=WordEncoder(), data=tmp_path / "data", output=output, layer=[1, 2], seeds=2
    )
    refused(here("submit", "discoeval", output), "SSP/abs in 2 ways (layer: 1, 2)", "--set layer=1")
    path = submitted("discoeval", output, "--set", "layer=2")
    lines = read_lines(path)
    assert [line["id"] for line in lines[:2]] == ["SSP/abs/test/1", "SSP/abs/test/2"]
    assert len(lines[0]["prediction"]) == 2
    said = graded("discoeval", path, tmp_path / "data", "--tasks", "SSP")
    run.results["metrics"] = [row for row in run.results["metrics"] if row["settings"]["layer"] == 2]
    agree(run, said, WAYS)
    lines[3]["prediction"] = lines[3]["prediction"][:1]
    board = open_board("discoeval", tmp_path / "data", tasks=["SSP"])
    (problem,) = board.validate(write_lines(path, lines))
    assert problem == (
        path.name,
        4,
        "the prediction has 1 labels where that of SSP/abs/test/1 has 2.",
    )


def test_ids_as_a_run_has_them_are_taken_with_their_layer(place: Path, file: Path, tmp_path: Path) -> None:
    lines = [{**line, "id": line["id"] + "#layer12"} for line in read_lines(file)]
    assert open_board("discoeval", place / "data").validate(write_lines(tmp_path / "l.jsonl", lines)) == []


def test_predictions_on_other_data_are_refused_in_one_sentence(
    place: Path, file: Path, tmp_path: Path
) -> None:
    write_suite(tmp_path / "other")
    path = tmp_path / "other" / "SSP" / "abs" / "test.txt"
    lines = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:4], "0\tanother sentence", *lines[5:]]) + "\n", "utf-8")
    done = here("grade", file, "--suite", "discoeval", "--labels", tmp_path / "other")
    assert done.code == 2
    where = [one["id"] for one in read_lines(file)].index("SSP/abs/test/5") + 1
    # Of 12 lines a task there are 144 items: two a line of the three tasks of BSO.
    said = "1 of 144 items are of other texts than those of this board, SSP/abs/test/5 for one"
    assert done.err.splitlines()[1:] == [f"  {file.name}, line {where}: {said}; predict on its own data."]
    # What is asked, not what the answer is: nobody can try out labels.
    path.write_text("\n".join(f"{1 - int(line[0])}{line[1:]}" for line in lines) + "\n", "utf-8")
    assert open_board("discoeval", tmp_path / "other").validate(file) == []


def test_a_part_is_graded_where_parts_are_taken(place: Path, file: Path, tmp_path: Path) -> None:
    lines = [line for line in read_lines(file) if not line["id"].startswith("RST")]
    part = write_lines(tmp_path / "part.jsonl", lines)
    (problem,) = open_board("discoeval", place / "data").validate(part)
    assert problem.problem.startswith("12 of 144 items have no prediction: RST/test/1, RST/test/2,")
    found = open_board("discoeval", place / "data", partial=True).grade(part)
    assert (found.score, found.not_scored) == (None, {"RST": "no predictions"})
    assert found.covers == "8 of 12 tasks"


def test_columns_find_their_cells(place: Path, file: Path) -> None:
    board = open_board("discoeval", place / "data")
    found = board.grade(file)
    cells = {column.task: column.find(found.metrics) for column in board.columns}
    assert [column.main for column in board.columns] == [True] + [False] * (len(cells) - 1)
    assert list(cells)[:2] == ["average", "SP"]
    assert None not in cells.values()
    assert open_board("discoeval", place / "data", tasks=["PDTB"]).columns[0].task == "PDTB"


def test_what_the_commands_refuse(place: Path, file: Path, tmp_path: Path) -> None:
    labels = ("--labels", place / "data")
    refused(here("grade", file, *labels), "name it with --suite")
    refused(here("grade", file, "--suite", "discoeval", *labels, "--split", "train"), "test, dev")
    refused(here("grade", file, "--suite", "discoeval", "--labels", tmp_path / "no"), "not a folder")
    refused(here("grade", file, "--suite", "discoeval", *labels, "--set", "layer=1"), "without settings")
    refused(here("grade", file, "--suite", "discoeval", *labels, "--tasks", "SP,BSO"), "one group")
    refused(here("submit", "discoeval", place / "run", "--fill-missing"), "--fill-missing")
    assert "accuracy" in here("grade", file, "--suite", "discoeval", *labels).out


def test_a_run_of_something_else_is_refused(place: Path, tmp_path: Path) -> None:
    from tests.support.run_folders import write_items

    item = {"id": "a", "task": "t", "settings": {}, "scores": {}}
    other = write_items(tmp_path / "other", "other", [item])
    refused(here("submit", "discoeval", other), "is a run of other, not of discoeval")
    run = write_items(tmp_path / "run", "discoeval", [item])
    refused(here("submit", "discoeval", run), "line 1: the item has no prediction", "not a run of discoeval")
    nothing = write_items(tmp_path / "none", "discoeval", [])
    refused(here("submit", "discoeval", nothing), "has no predictions on test")
    assert json.loads((run / "results.json").read_text())["metrics"] == []
