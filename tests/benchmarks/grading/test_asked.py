"""What identifies an item to a board says nothing of its gold answer, or answers could be tried out for free."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ensue.benchmarks.grading import open_board
from ensue.benchmarks.grading.predictions import PredictionsBoard
from tests.benchmarks.chapterbreak.test_task import examples, write_data
from tests.benchmarks.qags.small_sets import write_sets
from tests.benchmarks.senteval.folders import write_downstream
from tests.benchmarks.squality.invented import ASKED, STORY, story_row, write_rows
from tests.support.command import write_lines


def digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def asked(suite: str, labels: Path, **options: Any) -> dict[str, str]:
    board = open_board(suite, labels, **options)
    assert isinstance(board, PredictionsBoard)
    return {id: one.asked for id, one in board.questions.items()}


def test_senteval_by_its_sentences(tmp_path: Path) -> None:
    write_downstream(tmp_path / "downstream")
    before = asked("senteval", tmp_path, tasks=["SST2"])
    path = tmp_path / "downstream" / "SST" / "binary" / "sentiment-test"
    lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
    assert before["SST2/test/1"] == digest([lines[0][0].strip()])
    path.write_text("".join(f"{text}\t{1 - int(label)}\n" for text, label in lines), "utf-8")
    assert asked("senteval", tmp_path, tasks=["SST2"]) == before
    path.write_text("".join(f"{text}!\t{label}\n" for text, label in lines), "utf-8")
    assert not set(asked("senteval", tmp_path, tasks=["SST2"]).values()) & set(before.values())


def test_chapterbreak_whichever_suffix_is_the_gold_one(tmp_path: Path) -> None:
    first, *rest = examples(3, 3)
    before = asked("chapterbreak", write_data(tmp_path / "a.json", [first, *rest]))
    other = type(first)(
        first.id,
        first.split,
        first.work,
        first.boundary,
        first.context,
        first.negatives[2],
        (*first.negatives[:2], first.gold, *first.negatives[3:]),
    )
    assert asked("chapterbreak", write_data(tmp_path / "b.json", [other, *rest])) == before
    suffixes = sorted(digest(text) for text in (first.gold, *first.negatives))
    assert before["pg19/w0/0"] == digest(first.context, suffixes)


def test_qags_whatever_people_said(tmp_path: Path) -> None:
    write_sets(tmp_path)
    before = asked("qags", tmp_path, tasks=["cnndm"])
    path = tmp_path / "qags" / "mturk_cnndm.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        for sentence in row["summary_sentences"]:
            for one in sentence["responses"]:
                one["response"] = {"yes": "no", "no": "yes"}[one["response"]]
    write_lines(path, rows)
    assert asked("qags", tmp_path, tasks=["cnndm"]) == before
    text = " ".join(sentence["sentence"] for sentence in rows[0]["summary_sentences"])
    assert next(iter(before.values())) == digest(rows[0]["article"], text)


def test_squality_by_story_and_question(tmp_path: Path) -> None:
    row = story_row("1")
    write_rows(tmp_path / "v1" / "test.jsonl", row)
    before = asked("squality", tmp_path)
    assert before["1/1"] == digest(STORY, ASKED[0])
    for question in row["questions"]:
        for response in question["responses"]:
            response["response_text"] = "Another answer."
    write_rows(tmp_path / "v1" / "test.jsonl", row)
    assert asked("squality", tmp_path) == before


def test_shuffled_pairs_by_document_and_order(tmp_path: Path) -> None:
    sentences = ["It rained.", "We stayed in.", "Nobody came."]
    path = write_lines(tmp_path / "d.jsonl", [{"id": "d", "sentences": sentences}])
    settings = {"block_size": "1", "shuffles": "1"}
    (found,) = asked("shuffle", path, settings=settings).items()
    orders = ([0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0])
    assert found[0] == "d#k1#0"
    assert found[1] in {digest(sentences, 1, order) for order in orders}
