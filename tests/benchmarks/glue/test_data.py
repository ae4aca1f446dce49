"""GLUE's official layout: every task is read, quirks are handled and counted, faults name file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensue.benchmarks.glue.data import read_task
from ensue.benchmarks.glue.task import SPECS, TASK
from ensue.benchmarks.nlu.examples import DEV, DEV_MISMATCHED, TEST, TEST_MISMATCHED, TRAIN, Example, TaskData
from ensue.errors import EnsueError
from tests.benchmarks.glue.folders import write_glue


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_glue(tmp_path / "glue")


def _read(folder: Path, task: str, limit: int | None = None) -> TaskData:
    found = read_task(folder, TASK.select(task)[0], limit)
    assert found is not None
    return found


def _first(folder: Path, task: str, split: str = TRAIN) -> Example:
    return _read(folder, task).splits[split][0]


def test_every_split_of_every_task_is_read(folder: Path) -> None:
    for spec in SPECS:
        data = _read(folder, spec.name)
        assert list(data.splits) == list(spec.sizes)
        for split in data.splits:
            hidden = split in (TEST, TEST_MISMATCHED) and spec.name != "diagnostic"
            assert data.labelled(split) is not hidden
            published = f"{split} rows, of {spec.sizes[split]:,} published"
            assert data.notes[published] == len(data.splits[split])


def test_rows_become_examples(folder: Path) -> None:
    cola = _first(folder, "CoLA")
    assert (cola.id, cola.texts, cola.gold) == ("0", ("The gardener watered the roses.",), "1")
    assert cola.where == f"{folder / 'CoLA/train.tsv'}, line 1"
    assert _first(folder, "CoLA", DEV).texts == ('Nobody saw "the owl.',)
    assert _first(folder, "SST-2").texts == ("a warm and funny tale",)
    assert _first(folder, "MRPC").texts == ('Rain fell "all day.', "It rained all day.")
    assert _first(folder, "QQP", TEST).texts == ("When?", "At what time?")
    assert _first(folder, "STS-B").gold == 4.8
    assert _first(folder, "QNLI", DEV).gold == "not_entailment"
    assert _first(folder, "MNLI", DEV_MISMATCHED).gold == "contradiction"
    assert _first(folder, "WNLI").gold == "1"


def test_the_diagnostic_has_tags_and_without_its_labelled_file_none(folder: Path) -> None:
    first, second = _read(folder, "diagnostic").splits[TEST]
    assert first.tags == {"Lexical Semantics": ("Quantifiers",), "Logic": ("Universal", "Negation")}
    assert (second.id, second.gold, second.tags) == ("1", "entailment", {"Knowledge": ("World knowledge",)})
    (folder / "diagnostic" / "diagnostic-full.tsv").unlink()
    hidden = _read(folder, "diagnostic").splits[TEST]
    assert [(one.id, one.texts, one.gold) for one in hidden] == [
        (one.id, one.texts, None) for one in (first, second)
    ]


def test_broken_rows_of_qqp_are_left_out_of_training_and_named(folder: Path) -> None:
    data = _read(folder, "QQP")
    assert [one.id for one in data.splits[TRAIN]] == ["5", "7"]
    assert data.notes["train rows with too few columns, left out (lines 3, 4)"] == 2
    assert data.notes["questions that are empty"] == 1
    with (folder / "QQP" / "dev.tsv").open("a") as file:
        file.write("9\t1\t2\tWhy?\n")
    with pytest.raises(EnsueError, match=r"dev\.tsv, line 3: there are 4 columns where 6 were expected"):
        _read(folder, "QQP")


def test_mrpc_is_made_of_the_original_files(folder: Path) -> None:
    home = folder / "MRPC"
    whole = {split: [one.texts for one in found] for split, found in _read(folder, "MRPC").splits.items()}
    head = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    rows = [(home / name).read_text("utf-8").removeprefix(head) for name in ("train.tsv", "dev.tsv")]
    (home / "msr_paraphrase_train.txt").write_text(head + rows[1] + rows[0], "utf-8")
    test = (home / "test.tsv").read_text("utf-8").partition("\n")[2].replace("0\t15", "1\t15")
    (home / "msr_paraphrase_test.txt").write_text(head + test, "utf-8")
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        (home / name).unlink()
    with pytest.raises(EnsueError, match=r"dev_ids\.tsv tells apart: put that file beside it"):
        _read(folder, "MRPC")
    (home / "dev_ids.tsv").write_text("13\t14\n")
    made = _read(folder, "MRPC").splits
    assert {split: [one.texts for one in found] for split, found in made.items()} == whole
    assert [one.gold for one in made[TEST]] == ["1"]
    (home / "dev_ids.tsv").write_text("13\t14\n14\t13\n")
    with pytest.raises(EnsueError, match=r"dev_ids\.tsv, line 2: no pair of msr_paraphrase_train\.txt"):
        _read(folder, "MRPC")


def test_a_partial_file_is_read_and_noted(folder: Path) -> None:
    home = folder / "MNLI"
    (home / "dev_matched.tsv").rename(home / "dev_matched.partial1.tsv")
    data = _read(folder, "MNLI", limit=1)
    assert data.notes == {"dev rows in dev_matched.partial1.tsv, of 9,815 published": 1}
    assert len(data.splits[DEV]) == 1


def test_only_what_is_there_is_read(folder: Path) -> None:
    (folder / "RTE" / "train.tsv").unlink()
    assert list(_read(folder, "RTE").splits) == [DEV, TEST]
    assert list(_read(folder / "RTE", "RTE").splits) == [DEV, TEST]
    assert read_task(folder / "RTE", TASK.select("CoLA")[0]) is None
    for path in (folder / "RTE").iterdir():
        path.unlink()
    assert read_task(folder, TASK.select("RTE")[0]) is None


def test_the_fingerprint_is_of_whole_files(folder: Path) -> None:
    before = _read(folder, "SST-2", limit=1).fingerprint
    assert _read(folder, "SST-2").fingerprint == before
    with (folder / "SST-2" / "train.tsv").open("a") as file:
        file.write("one more \t1\n")
    assert _read(folder, "SST-2", limit=1).fingerprint != before


@pytest.mark.parametrize(
    ("task", "file", "content", "words"),
    [
        ("CoLA", "train.tsv", "a\t2\t\tText.\n", "line 1: the label '2' is none of 0, 1"),
        ("CoLA", "train.tsv", "a\t1\tText.\n", "line 1: there are 3 columns where 4 were expected"),
        ("SST-2", "dev.tsv", "sentence\tlabel\n \t1\n", "line 2: 'sentence' is empty"),
        ("SST-2", "train.tsv", "index\tsentence\n0\tfine\n", "line 2: there is no label"),
        (
            "RTE",
            "dev.tsv",
            "index\tsentence1\tlabel\n0\tx\t1\n",
            "line 2: there is no 'sentence2', only index",
        ),
        (
            "RTE",
            "test.tsv",
            "index\tsentence1\tsentence2\n0\ta\tb\n0\ta\tb\n",
            "line 3: the id '0' was there before",
        ),
        ("RTE", "test.tsv", "index\tsentence1\tsentence2\nx\ta\tb\n", "line 2: 'index' is a text"),
        (
            "STS-B",
            "dev.tsv",
            "index\tsentence1\tsentence2\tscore\n0\ta\tb\t5.5\n",
            "line 2: the score '5.5' is not between 0 and 5",
        ),
    ],
)
def test_faults_name_file_and_line(folder: Path, task: str, file: str, content: str, words: str) -> None:
    (folder / task / file).write_text(content)
    with pytest.raises(EnsueError, match=rf"{file}, {words}"):
        _read(folder, task)
