"""The real files of SuperGLUE: published sizes and majorities, and spans that mark what the files name."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.nlu.examples import DEV, TEST, TRAIN, TaskData
from ensue.benchmarks.superglue.data import find_word, read_task
from ensue.benchmarks.superglue.task import SPECS

pytestmark = pytest.mark.data


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").removesuffix("\n").split("\n")]


@pytest.fixture(scope="module")
def folder() -> Path:
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / "superglue").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds superglue")
    return Path(root) / "superglue"


@pytest.fixture(scope="module")
def tasks(folder: Path) -> dict[str, TaskData]:
    found = {spec.name: read_task(folder, spec) for spec in SPECS}
    return {name: data for name, data in found.items() if data is not None}


def test_sizes_are_published_ones_but_for_what_is_noted(tasks: dict[str, TaskData]) -> None:
    assert list(tasks) == [spec.name for spec in SPECS]
    notes = {name: dict(data.notes) for name, data in tasks.items() if data.notes}
    assert notes == {
        "MultiRC": {"answers that are empty": 4},
        "ReCoRD": {
            "train rows in fewglue_train32.jsonl, of 100,730 published": 32,
            "dev rows in fewglue_dev32.jsonl, of 10,000 published": 32,
        },
        "WSC": {
            "spans moved to where the text has their words": 2,
            "spans whose words the text has not in a row, taken from their index": 2,
        },
    }
    questions = {split: len({one.group for one in found}) for split, found in tasks["MultiRC"].splits.items()}
    assert questions == {TRAIN: 5_131, DEV: 953, TEST: 1_820}


@pytest.mark.parametrize(
    ("task", "label", "percent"),
    [
        ("BoolQ", "true", 62.2),
        ("CB", "contradiction", 50.0),
        ("COPA", "0", 55.0),
        ("RTE", "entailment", 52.7),
        ("WiC", "true", 50.0),
        ("WSC", "false", 63.5),
    ],
)
def test_dev_majorities_are_those_of_table_a_2(
    tasks: dict[str, TaskData], task: str, label: str, percent: float
) -> None:
    golds = Counter(one.gold for one in tasks[task].splits[DEV])
    assert golds[label] == max(golds.values())
    assert round(100 * golds[label] / golds.total(), 1) == percent


def test_entities_and_answers_agree(folder: Path, tasks: dict[str, TaskData]) -> None:
    """An answer has its text and its characters: both must be of the same entity."""
    for split, name in ((TRAIN, "fewglue_train32"), (DEV, "fewglue_dev32")):
        for one, row in zip(
            tasks["ReCoRD"].splits[split], _rows(folder / "ReCoRD" / f"{name}.jsonl"), strict=True
        ):
            spans = {(entity["start"], entity["end"]) for entity in row["passage"]["entities"]}
            for answer in row["qas"][0]["answers"]:
                assert (answer["start"], answer["end"]) in spans
                assert one.texts[0][answer["start"] : answer["end"] + 1] == answer["text"]
                assert isinstance(one.gold, tuple)
                assert answer["text"] in one.gold


def test_mentions_are_those_the_files_name(folder: Path, tasks: dict[str, TaskData]) -> None:
    """But for two whose words the text does not have in a row."""
    other = 0
    for split, name in ((TRAIN, "train"), (DEV, "val"), (TEST, "test")):
        for one, row in zip(tasks["WSC"].splits[split], _rows(folder / "WSC" / f"{name}.jsonl"), strict=True):
            target = row["target"]
            for span, key in zip(one.spans, ("span1_text", "span2_text"), strict=True):
                marked = " ".join(one.texts[0][span.start : span.end].split()).lower()
                other += marked != " ".join(target[key].split()).lower().rstrip(".,")
    assert other == 2


def test_words_found_without_their_characters_are_mostly_those_given(
    tasks: dict[str, TaskData], folder: Path
) -> None:
    """The way for the first version of WiC, held against the characters that this version has."""
    remarks: Counter[tuple[str, bool]] = Counter()
    for one, row in zip(tasks["WiC"].splits[TRAIN], _rows(folder / "WiC" / "train.jsonl"), strict=True):
        for text, span in zip(one.texts, one.spans, strict=True):
            place = find_word(text, row["word"])
            remarks[place.remark, (place.start, place.end) == (span.start, span.end)] += 1
    assert (remarks["", True], remarks["", False]) == (8_989, 1)
    assert (remarks["found by their beginning", True], remarks["found by their beginning", False]) == (
        1_476,
        17,
    )


def test_every_text_about_gender_has_its_partner(tasks: dict[str, TaskData]) -> None:
    groups = Counter(one.group for one in tasks["AX-g"].splits[TEST])
    assert (len(groups), set(groups.values())) == (178, {2})
    assert [one.id for one in tasks["AX-g"].splits[TEST]] == [str(number) for number in range(356)]
