"""Submissions of runs: the same bytes every time, one way of answering a task, what is missing said."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.grading import grade
from ensue.benchmarks.nlu.submissions.submission import collect, write_submission
from ensue.errors import EnsueError
from tests.benchmarks.nlu import folders
from tests.benchmarks.nlu.folders import Predicted
from tests.support.command import here, refused, write_lines


def items(predictions: Predicted, **settings: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{task}/{split}/{id}",
            "cluster": id,
            "task": task,
            "settings": {"split": split, **settings},
            "scores": {},
            "outputs": {"predicted": predicted},
        }
        for task, splits in predictions.items()
        for split, found in splits.items()
        for id, predicted in found.items()
    ]


def run_folder(path: Path, rows: list[dict[str, Any]], source: Path | None = None) -> Path:
    path.mkdir()
    (path / "run.json").write_text(json.dumps({"data": {"source": str(source)}}))
    (path / "results.json").write_text(json.dumps({"metrics": []}))
    write_lines(path / "items.jsonl", rows)
    return path


def collected(rows: list[dict[str, Any]], split: str = "dev", **chosen: str) -> Any:
    return collect(enumerate(rows, 1), Path("run/items.jsonl"), "glue", split, chosen)


def test_the_same_predictions_are_the_same_bytes(tmp_path):
    predictions = folders.glue_predictions()
    write_submission("glue", predictions, tmp_path / "a.zip", "dev")
    write_submission("glue", predictions, tmp_path / "deep" / "b.zip", "dev")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "deep" / "b.zip").read_bytes()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["b.zip"]
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == ["CoLA.tsv", "STS-B.tsv", "RTE.tsv"]
        assert archive.testzip() is None


def test_what_is_missing_and_unusual_is_said(tmp_path):
    done = write_submission("glue", folders.glue_predictions(), tmp_path / "s.zip", "dev")
    assert done.files == {"CoLA.tsv": 12, "STS-B.tsv": 12, "RTE.tsv": 12}
    assert done.missing == [
        "SST-2.tsv", "MRPC.tsv", "QQP.tsv", "MNLI-m.tsv", "MNLI-mm.tsv", "QNLI.tsv", "WNLI.tsv", "AX.tsv"
    ]  # fmt: skip
    assert done.notes[0] == "CoLA.tsv has 12 predictions, of 1,043 published examples."


def test_nothing_is_written_where_there_is_nothing_or_something_wrong(tmp_path):
    with pytest.raises(EnsueError, match="no predictions on test of any task of glue"):
        write_submission("glue", folders.glue_predictions(), tmp_path / "s.zip")
    with pytest.raises(EnsueError, match="CoLA: the label '2' is none of 0, 1"):
        write_submission("glue", {"CoLA": {"dev": {"0": "2"}}}, tmp_path / "s.zip", "dev")
    with pytest.raises(EnsueError, match="There is no suite 'gleu'"):
        write_submission("gleu", {}, tmp_path / "s.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EnsueError, match="cannot be written"):
        write_submission("glue", folders.glue_predictions(), tmp_path / "file" / "s.zip", "dev")


def test_items_are_collected_by_task_split_and_id():
    predictions = folders.glue_predictions()
    rows = items(predictions) + items(
        {"CoLA": {"test": {"0": "1"}}, "MNLI": {"test-mismatched": {"4": "neutral"}}}
    )
    assert collected(rows) == predictions
    assert collected(rows, "test") == {
        "CoLA": {"test": {"0": "1"}},
        "MNLI": {"test-mismatched": {"4": "neutral"}},
    }


def test_of_several_ways_one_is_picked():
    one, other = folders.glue_predictions(1), folders.glue_predictions(2)
    rows = items(one, template="plain", shots=0) + items(other, template="question", shots=0)
    with pytest.raises(EnsueError) as caught:
        collected(rows)
    assert str(caught.value) == (
        "run/items.jsonl answers CoLA in 2 ways (template: plain, question); pick one with --set template=plain, "
        "or for this task alone with --set CoLA.template=plain."
    )
    assert collected(rows, template="question") == other
    mixed = collected(rows, **{"template": "question", "STS_B.template": "plain"})
    assert mixed == {**other, "STS-B": one["STS-B"]}
    assert collected(rows, template="question", shots="0", seed="5") == other
    assert collected(rows, template="none") == {}


BAD_ITEMS = {
    "another id": ({"id": "CoLA/0"}, "line 1: the id 'CoLA/0' is not of the form CoLA/dev/EXAMPLE"),
    "no prediction": ({"outputs": {}}, "line 1: the item has no prediction"),
    "a label of no task": ({"outputs": {"predicted": "x"}}, "line 1: CoLA: the label 'x' is none of 0, 1"),
}


@pytest.mark.parametrize("case", BAD_ITEMS)
def test_a_bad_item_is_named(case):
    changes, words = BAD_ITEMS[case]
    (row,) = items({"CoLA": {"dev": {"0": "1"}}})
    with pytest.raises(EnsueError, match=words):
        collected([{**row, **changes}])


def test_an_item_twice_is_named():
    (row,) = items({"CoLA": {"dev": {"0": "1"}}})
    with pytest.raises(EnsueError, match="line 2: CoLA/dev/0 comes twice"):
        collected([row, row])


def test_the_command_writes_what_grading_takes(tmp_path):
    data = folders.glue(tmp_path / "glue")
    run = run_folder(tmp_path / "run", items(folders.glue_predictions()))
    done = here("submit", "glue", run, "--split", "dev")
    assert (done.code, done.err) == (0, "")
    assert "missing: SST-2.tsv, MRPC.tsv" in done.out
    assert done.out.splitlines()[-1] == f"submission: {run / 'glue-dev.zip'}"
    assert grade(run / "glue-dev.zip", data, split="dev").score is not None
    said = json.loads(
        here("submit", "glue", run, "--split", "dev", "--output", tmp_path / "o.zip", "--json").out
    )
    assert said["files"] == {"CoLA.tsv": 12, "STS-B.tsv": 12, "RTE.tsv": 12}
    assert (tmp_path / "o.zip").read_bytes() == (run / "glue-dev.zip").read_bytes()


def test_missing_tasks_are_filled_only_when_asked(tmp_path):
    data = folders.glue(tmp_path / "glue")
    kept = {task: found for task, found in folders.glue_predictions().items() if task != "CoLA"}
    run = run_folder(tmp_path / "run", items(kept), data)
    assert "CoLA.tsv" in json.loads(here("submit", "glue", run, "--split", "dev", "--json").out)["missing"]
    said = json.loads(here("submit", "glue", run, "--split", "dev", "--fill-missing", "--json").out)
    assert said["filled"] == ["CoLA.tsv"]
    graded = grade(run / "glue-dev.zip", data, split="dev")
    assert {row["task"]: row["value"] for row in graded.metrics if row["metric"] == "mcc"} == {"CoLA": 0.0}


def test_what_the_command_refuses(tmp_path):
    run = run_folder(tmp_path / "run", items(folders.glue_predictions()))
    refused(here("submit", "gleu", run), "'gleu'", "did you mean glue?")
    refused(here("submit", "glue", run, "--split", "train"), "--split train", "test, dev")
    without = here("submit", "superglue", run)
    refused(without, "no predictions on test of any task of superglue", "--set answer_test=yes")
    assert "answer_test" not in here("submit", "superglue", run, "--split", "dev").err
    refused(here("submit", "glue", tmp_path / "none"), "not a run folder")
    refused(here("submit", "glue", run, "--split", "dev", "--fill-missing"), "--data")
    (run / "results.json").unlink()
    refused(here("submit", "glue", run, "--split", "dev"), "unfinished")
