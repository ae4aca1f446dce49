"""A board says which of its tasks are graded on a part of what was published, on other data, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensue.benchmarks.grading import open_board
from tests.benchmarks.chapterbreak.test_task import examples, write_data
from tests.benchmarks.discoeval.folders import write_suite
from tests.benchmarks.qags.small_sets import write_sets
from tests.benchmarks.senteval.folders import write_downstream
from tests.benchmarks.squality.invented import story_row, write_rows
from tests.support.command import write_lines
from tests.support.corpus import document


def parts(suite: str, labels: Path, **options: Any) -> Mapping[str, str]:
    return open_board(suite, labels, **options).parts()


def test_discoeval_names_tasks_in_part_and_those_missing(tmp_path: Path) -> None:
    write_suite(tmp_path)
    found = parts("discoeval", tmp_path)
    assert found["average"] == "9 of 12 tasks, without SP/wiki, SP/arxiv and DC/wiki"
    assert found["SSP/abs"] == "12 of 4,000 items"
    (tmp_path / "BSO" / "wiki" / "train.txt").unlink()
    assert parts("discoeval", tmp_path, tasks=["BSO"])["BSO"] == "2 of 3 tasks, without BSO/wiki"


def test_senteval_names_tasks_in_part_and_those_missing(tmp_path: Path) -> None:
    write_downstream(tmp_path / "downstream")
    found = parts("senteval", tmp_path)
    assert found["SST2"].endswith(" of 1,821 items")
    assert found["STS13"].endswith(" of 1,500 items")
    assert "of 26 tasks, without " in found["SentEval"]
    assert parts("senteval", tmp_path, tasks=["SST2"]).keys() == {"SST2"}


def test_chapterbreak_by_split_and_boundary(tmp_path: Path) -> None:
    found = parts("chapterbreak", write_data(tmp_path / "a.json", examples(3, 3)))
    assert found == {"pg19": "3 of 241 items"}


def test_qags_by_set(tmp_path: Path) -> None:
    write_sets(tmp_path)
    found = parts("qags", tmp_path)
    assert found["cnndm"].endswith(" of 235 items")
    assert parts("qags", tmp_path, tasks=["cnndm"]).keys() == {"cnndm"}


def test_squality_by_version_and_split(tmp_path: Path) -> None:
    row = story_row("1")
    write_rows(tmp_path / "v1" / "test.jsonl", row)
    count = len(row["questions"])
    assert parts("squality", tmp_path) == {"squality": f"{count} of 180 items"}
    write_rows(tmp_path / "own" / "test.jsonl", row)
    assert parts("squality", tmp_path / "own") == {}


def test_documents_are_whatever_the_organiser_chose(tmp_path: Path) -> None:
    rows = [{"id": f"d{n}", "sentences": document(n, 7)} for n in range(3)]
    path = write_lines(tmp_path / "d.jsonl", rows)
    for suite in ("shuffle", "intruder"):
        assert parts(suite, path) == {suite: "3 documents of its organiser's choice"}
