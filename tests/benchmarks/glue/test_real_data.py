"""The real files of GLUE: all are read, with the published sizes, and as the csv module reads them."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from ensue.benchmarks.glue.data import COLUMNS, read_task
from ensue.benchmarks.glue.task import SPECS
from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, TaskData

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def folder() -> Path:
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / "glue").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds glue")
    return Path(root) / "glue"


@pytest.fixture(scope="module")
def tasks(folder: Path) -> dict[str, TaskData]:
    found = {spec.name: read_task(folder, spec) for spec in SPECS}
    return {name: data for name, data in found.items() if data is not None}


def test_sizes_are_published_ones_but_for_what_is_noted(tasks: dict[str, TaskData]) -> None:
    assert list(tasks) == [spec.name for spec in SPECS]
    notes = {name: dict(data.notes) for name, data in tasks.items() if data.notes}
    assert notes == {
        "QQP": {"train rows in train.partial23496.tsv, of 363,846 published": 23_496},
        "MNLI": {"dev rows in dev_matched.partial1599.tsv, of 9,815 published": 1_599},
    }
    lacking = {name: set(data.spec.sizes) - set(data.splits) for name, data in tasks.items()}
    assert {name for name, splits in lacking.items() if splits} == {"QQP", "MNLI", "QNLI"}
    assert lacking["QNLI"] == {TRAIN}


@pytest.mark.parametrize("task", ["SST-2", "QNLI", "RTE", "STS-B", "WNLI"])
def test_rows_are_those_of_the_csv_module(folder: Path, tasks: dict[str, TaskData], task: str) -> None:
    columns = COLUMNS[task]
    with (folder / task / "dev.tsv").open(encoding="utf-8-sig", newline="\n") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    found = tasks[task].splits[DEV]
    assert [one.texts for one in found] == [
        tuple(row[name].strip() for name in columns.texts) for row in rows
    ]
    golds = [row[columns.gold] for row in rows]
    assert [one.gold for one in found] == (list(map(float, golds)) if task == "STS-B" else golds)


def test_mrpc_divides_its_original_files_as_the_finished_ones_are(
    folder: Path, tasks: dict[str, TaskData], tmp_path: Path
) -> None:
    home = tmp_path / "MRPC"
    home.mkdir()
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"):
        (home / name).symlink_to(folder / "MRPC" / name)
    made = read_task(home, tasks["MRPC"].spec)
    assert made is not None
    assert made.notes == {}
    for split in (TRAIN, DEV):
        pairs = [
            Counter((one.texts, one.gold) for one in data.splits[split]) for data in (made, tasks["MRPC"])
        ]
        assert pairs[0] == pairs[1]
    assert made.labelled(TEST)


def test_the_diagnostic_without_labels_is_in_the_same_order(
    folder: Path, tasks: dict[str, TaskData], tmp_path: Path
) -> None:
    home = tmp_path / "diagnostic"
    home.mkdir()
    (home / "diagnostic.tsv").symlink_to(folder / "diagnostic" / "diagnostic.tsv")
    hidden = read_task(home, tasks["diagnostic"].spec)
    assert hidden is not None
    full = tasks["diagnostic"].splits[TEST]
    assert [(one.id, one.texts) for one in hidden.splits[TEST]] == [(one.id, one.texts) for one in full]
    assert Counter(one.gold for one in full) == {"entailment": 460, "neutral": 386, "contradiction": 258}
    assert sum("Universal" in one.tags.get("Logic", ()) for one in full) == 18
