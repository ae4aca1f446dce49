"""The judgments are read as they stand, and every fault is named with its line."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.qags.data import Response, read_judgment_file, read_judgments
from ensue.errors import EnsueError
from tests.benchmarks.qags.invented import ARTICLE, judged, write_lines


def test_summaries_keep_their_sentences_and_judgments(tmp_path: Path) -> None:
    write_lines(tmp_path / "mturk_xsum.jsonl", [judged(("yes", "no", "yes")), judged(("no",), ("yes",))])
    first, second = read_judgments(tmp_path, "xsum")
    assert (first.id, first.article) == ("xsum-0", ARTICLE)
    assert first.sentences[0].responses == (Response("0", True), Response("1", False), Response("2", True))
    assert second.text == "Sentence 0 of the summary. Sentence 1 of the summary."
    assert second.where.endswith("mturk_xsum.jsonl, line 2")


def spoiled(change: str) -> Any:
    row = copy.deepcopy(judged(("yes", "no", "yes"), ("no", "no", "yes")))
    sentence = row["summary_sentences"][1]
    match change:
        case "no article":
            del row["article"]
        case "empty article":
            row["article"] = "  "
        case "no sentences":
            row["summary_sentences"] = []
        case "empty sentence":
            sentence["sentence"] = ""
        case "sentences as text":
            row["summary_sentences"] = "One. Two."
        case "no responses":
            sentence["responses"] = []
        case "unknown word":
            sentence["responses"][2]["response"] = "maybe"
        case "twice":
            sentence["responses"][2]["worker_id"] = 0
        case "no worker":
            del sentence["responses"][0]["worker_id"]
    return row


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("no article", "there is no 'article'"),
        ("empty article", "'article' is empty"),
        ("no sentences", "has no sentences"),
        ("empty sentence", "summary_sentences 2: 'sentence' is empty"),
        ("sentences as text", "a list of objects was expected"),
        ("no responses", "summary_sentences 2: no worker has judged"),
        ("unknown word", "the label 'maybe' is none of yes, no"),
        ("twice", "worker 0 has judged the sentence twice"),
        ("no worker", "there is no 'worker_id'"),
    ],
)
def test_faults_name_the_line(tmp_path: Path, change: str, what: str) -> None:
    path = write_lines(tmp_path / "judgments.jsonl", [judged(("yes",)), spoiled(change)])
    with pytest.raises(EnsueError, match=f"line 2.*{what}") as error:
        read_judgment_file(path, "own")
    assert str(error.value).startswith(str(path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "judgments.jsonl"
    path.write_bytes(b'{"article": "caf\xe9"}\n')
    with pytest.raises(EnsueError, match="line 1: byte 17 of the line is not UTF-8"):
        read_judgment_file(path, "own")


def test_a_folder_without_the_file_and_a_set_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match=r"has no mturk_cnndm\.jsonl; name QAGS's data folder with --data"):
        read_judgments(tmp_path, "cnndm")
    with pytest.raises(EnsueError, match="no judgments 'newsroom'; there are cnndm and xsum"):
        read_judgments(tmp_path, "newsroom")
