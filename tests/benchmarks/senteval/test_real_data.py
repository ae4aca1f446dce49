"""The real files: standard sizes, classes, and the quirks the readers are made for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensue.benchmarks.senteval.data import SentEvalSuite, chosen, read_suite

pytestmark = pytest.mark.data

SIZES = {
    "STS12": (3108,),
    "STS13": (1500,),
    "STS14": (3750,),
    "STS15": (3000,),
    "STS16": (1186,),
    "STSBenchmark": (5749, 1500, 1379),
    "SICKRelatedness": (4500, 500, 4927),
    "SICKEntailment": (4500, 500, 4927),
    "MR": (10662,),
    "CR": (3775,),
    "MPQA": (10606,),
    "SUBJ": (10000,),
    "SST2": (67349, 872, 1821),
    "SST5": (8544, 1101, 2210),
    "TREC": (5452, 500),
    "MRPC": (4076, 1725),
}


@pytest.fixture(scope="module")
def suite() -> SentEvalSuite:
    root = os.environ.get("ENSUE_DATA")
    if not root or not (Path(root) / "senteval").is_dir():
        pytest.skip("set ENSUE_DATA to the folder that holds senteval")
    return read_suite(str(Path(root) / "senteval"), chosen(""))


def test_sizes_are_the_standard_ones(suite: SentEvalSuite) -> None:
    found = {
        data.task.name: (sum(map(len, data.parts.values())),)
        if data.task.sets
        else tuple(map(len, data.parts.values()))
        for data in suite.tasks
        if data.task.group != "Probing"
    }
    assert found == SIZES


def test_what_is_left_out_and_noted(suite: SentEvalSuite) -> None:
    notes = {data.task.name: dict(data.notes) for data in suite.tasks if data.notes}
    assert set(notes) == {"CR", "MPQA", "TREC"}
    assert (sum(notes["CR"].values()), sum(notes["MPQA"].values())) == (4, 3)
    skipped = {data.task.name: sum(data.skipped.values()) for data in suite.tasks if data.skipped}
    assert skipped == {"STS15": 5500, "STS16": 7997}


def test_labels_and_scores_use_their_whole_range(suite: SentEvalSuite) -> None:
    for data in suite.tasks:
        gold = [value for rows in data.parts.values() for value in rows.gold]
        if data.classes:
            assert set(gold) == set(range(len(data.classes)))
        else:
            assert (min(gold), max(gold)) == ((1.0 if "SICK" in data.task.name else 0.0), 5.0)
