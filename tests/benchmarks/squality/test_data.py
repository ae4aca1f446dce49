"""Reading stories: what comes out, and what every fault says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.squality.data import check_references, examples, read_stories
from ensue.errors import EnsueError
from tests.benchmarks.squality.invented import ANSWERS, ASKED, STORY, story_row, write_rows


def test_stories_come_out_as_they_were_written(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.jsonl", story_row("1"), story_row("2"))
    stories = read_stories(path)
    assert [story.id for story in stories] == ["1", "2"]
    assert stories[0].text == STORY
    assert [question.text for question in stories[0].questions] == list(ASKED)
    assert stories[1].questions[1].references == ANSWERS[1]
    assert [response.writer for response in stories[0].questions[0].responses] == ["1", "2", "3", "4"]
    assert [one.id for one in examples(stories)] == ["1/1", "1/2", "2/1", "2/2"]
    assert [one.question.asks_for_plot for one in examples(stories)] == [True, False, True, False]
    check_references(stories, path)


def _without(*keys: str | int) -> Callable[[dict[str, Any]], None]:
    def change(row: Any) -> None:
        for key in keys[:-1]:
            row = row[key]
        del row[keys[-1]]

    return change


def _set(value: object, *keys: str | int) -> Callable[[dict[str, Any]], None]:
    def change(row: Any) -> None:
        for key in keys[:-1]:
            row = row[key]
        row[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without("document"), "line 2: there is no 'document'"),
        (_without("metadata", "passage_id"), "line 2, metadata: there is no 'passage_id'"),
        (_set("  ", "document"), "line 2: 'document' is empty"),
        (_set([], "questions"), "line 2: there is no question"),
        (_set("two", "questions", 1, "question_number"), "line 2, questions 2: 'question_number'"),
        (_set(0, "questions", 1, "question_number"), "counted from 1"),
        (_set(1, "questions", 1, "question_number"), "line 2: two questions have the same number"),
        (_set([], "questions", 0, "responses"), "line 2, questions 1: there is no response"),
        (_set("", "questions", 0, "responses", 2, "response_text"), "responses 3: 'response_text' is empty"),
        (_set(None, "questions", 0, "responses", 2, "worker_id"), "responses 3: 'worker_id' is neither"),
        (_set("9000", "metadata", "passage_id"), r"story 9000 was there before \(line 1\)"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, change: Callable[[Any], None], said: str) -> None:
    row = copy.deepcopy(story_row())
    change(row)
    path = write_rows(tmp_path / "test.jsonl", story_row("9000"), row)
    with pytest.raises(EnsueError, match=said) as caught:
        read_stories(path)
    assert str(path) in str(caught.value)


def test_what_is_not_utf8_or_json_is_refused_with_its_line(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.jsonl", story_row())
    path.write_bytes(path.read_bytes() + b'{"document": "caf\xe9"}\n')
    with pytest.raises(EnsueError, match=r"line 2: byte 18 of the line is not UTF-8"):
        read_stories(path)
    path.write_text("{\n", encoding="utf-8")
    with pytest.raises(EnsueError, match="line 1: this is not JSON"):
        read_stories(path)


def test_one_reference_where_four_are_expected_is_named(tmp_path: Path) -> None:
    row = story_row()
    del row["questions"][1]["responses"][1:]
    path = write_rows(tmp_path / "test.jsonl", row)
    with pytest.raises(EnsueError, match="story 9001, question 2 has one summary where 4 are expected"):
        check_references(read_stories(path), path)
