"""Finding versions and reading stories: what comes out whatever the layout and markup, and what every fault says."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ensue.benchmarks.squality.data import (
    check_references,
    examples,
    find_file,
    plain_text,
    read_stories,
    split_name,
    versions,
)
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
    with pytest.raises(EnsueError, match=r"is not UTF-8 \(line 2, byte \d+\)"):
        read_stories(path)
    path.write_text("{\n", encoding="utf-8")
    with pytest.raises(EnsueError, match="line 1 is not JSON"):
        read_stories(path)


def test_one_reference_where_four_are_expected_is_named(tmp_path: Path) -> None:
    row = story_row()
    del row["questions"][1]["responses"][1:]
    path = write_rows(tmp_path / "test.jsonl", row)
    with pytest.raises(EnsueError, match="story 9001, question 2 has one summary where 4 are expected"):
        check_references(read_stories(path), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    home = tmp_path / "squality"
    for place in ("v1", "v1-3/html", "v1-3/txt"):
        for split in ("train", "test"):
            write_rows(home / place / f"{split}.jsonl", story_row())
    (home / "human-eval").mkdir()
    return home


def test_all_versions_of_a_folder_are_found_oldest_first(folder: Path) -> None:
    assert [version.label for version in versions(folder)] == ["v1", "v1-3/txt", "v1-3/html"]


@pytest.mark.parametrize(
    ("asked", "label", "place"),
    [
        (None, "v1", "v1"),
        ("v1", "v1", "v1"),
        ("v1-3", "v1-3/txt", "v1-3/txt"),
        ("1.3", "v1-3/txt", "v1-3/txt"),
        ("V1.3/html", "v1-3/html", "v1-3/html"),
    ],
)
def test_a_version_is_found_by_any_of_its_names(
    folder: Path, asked: str | None, label: str, place: str
) -> None:
    assert find_file(folder, asked, "test") == (folder / place / "test.jsonl", label)


def test_the_folder_of_one_version_or_form_or_a_file_will_do(folder: Path) -> None:
    assert find_file(folder / "v1-3")[1] == "v1-3/txt"
    assert find_file(folder / "v1-3" / "html", split="train") == (
        folder / "v1-3" / "html" / "train.jsonl",
        "v1-3/html",
    )
    file = folder / "v1" / "train.jsonl"
    assert find_file(file) == (file, "v1")
    repository = folder.parent / "checkout"
    repository.mkdir()
    folder.rename(repository / "data")
    assert find_file(repository, "v1-3")[0] == repository / "data" / "v1-3" / "txt" / "test.jsonl"


def test_a_folder_without_a_version_is_read_under_no_name(tmp_path: Path) -> None:
    write_rows(tmp_path / "own" / "dev.jsonl", story_row())
    assert find_file(tmp_path / "own", split="validation")[1] == "unnamed"


def test_what_is_not_there_is_said_with_what_is(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EnsueError, match=r"no version 'v2'; it has v1, v1-3/txt, v1-3/html"):
        find_file(folder, "v2")
    with pytest.raises(EnsueError, match=r"v1 in .* has no dev.jsonl; it has train, test"):
        find_file(folder, "v1", "dev")
    with pytest.raises(EnsueError, match="There is no split 'final'"):
        split_name("final")
    with pytest.raises(EnsueError, match="holds no SQuALITY"):
        find_file(folder / "human-eval")
    with pytest.raises(EnsueError, match="is not a folder"):
        find_file(tmp_path / "nowhere")


DECLARATION = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"\n    "strict.dtd">\n'


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            DECLARATION + "The Ferry\nIt had not run.\n\n\n\nNot once.",
            "The Ferry\nIt had not run.\n\nNot once.",
        ),
        (
            "\n\n\nThe Ferry\n   \n  by nobody\n \n  It had not run.\n",
            "The Ferry\nby nobody\n\nIt had not run.",
        ),
        (
            DECLARATION
            + "<html>\n <h1>\n  The Ferry\n </h1>\n <p>\n  It had\n  <i>\n   not\n  </i>\n  run &amp; "
            "would\n  <br/>\n  not.\n </p>\n</html>\n",
            "The Ferry\n\nIt had not run & would not.",
        ),
        ("<html><head><title>T</title><style>p {}</style></head><p>a</p><div>b</div></html>", "a\n\nb"),
        ('<?xml version="1.0"?>\n' + DECLARATION + "The Ferry", "The Ferry"),
        ("Two is < three, and three > two.", "Two is < three, and three > two."),
    ],
)
def test_documents_lose_their_markup_and_nothing_else(document: str, text: str) -> None:
    assert plain_text(document) == text
    assert plain_text(text) == text
