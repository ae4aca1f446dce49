"""ChapterBreak graded from predictions: the numbers of the run, whatever the order of the suffixes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ensue
from ensue.benchmarks.grading import open_board
from tests.benchmarks.chapterbreak.test_task import examples, write_data
from tests.benchmarks.grading.agreement import agree, graded, submitted
from tests.support.command import here, read_lines, refused, write_lines

WAYS = ("prefix_tokens", "suffix_tokens")
# What only a model's own tokens tell, which nobody can check.
UNCHECKED = ("word_perplexity", "subwords_per_word")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chapterbreak")
    (folder / "data").mkdir()
    write_data(folder / "data" / "chapterbreak.json", [*examples(14, 3), *examples(12, 3, split="ao3")])
    ensue.run(
        "chapterbreak",
        model="random",
        data=folder / "data",
        output=folder / "run",
        prefix_tokens=[16, 64],
        negatives=["in-book", "same-split"],
    )
    return folder


def test_a_run_is_graded_as_it_was_judged(place: Path, tmp_path: Path) -> None:
    refused(here("submit", "chapterbreak", place / "run"), "2 ways (prefix_tokens: 16, 64)")
    path = submitted("chapterbreak", place / "run", "--set", "prefix_tokens=64")
    said = graded("chapterbreak", path, place / "data", "--set", "negatives=in-book,same-split")
    run = ensue.Run(place / "run")
    run.results["metrics"] = [row for row in run.results["metrics"] if row["settings"]["prefix_tokens"] == 64]
    assert agree(run, said, WAYS, without=UNCHECKED) == {}
    assert len(said["metrics"]) == 2 * 2 * 4
    # The place of a suffix says nothing: shuffled, they are graded alike.
    lines = read_lines(path)
    for line in lines:
        scores = list(line["prediction"].items())
        random.Random(line["id"]).shuffle(scores)
        line["prediction"] = dict(scores)
    mixed = write_lines(tmp_path / "mixed.jsonl", lines)
    again = graded("chapterbreak", mixed, place / "data", "--set", "negatives=in-book,same-split")
    assert again["metrics"] == said["metrics"]


def test_a_board_of_one_split_takes_the_ids_of_items(place: Path, tmp_path: Path) -> None:
    path = submitted("chapterbreak", place / "run", "--set", "prefix_tokens=16")
    lines = [
        {**line, "id": f"{line['id']}#n16"}
        for line in read_lines(path)
        if line["id"].startswith("ao3/") and "#" not in line["id"]
    ]
    board = open_board("chapterbreak", place / "data", tasks=["ao3"])
    found = board.grade(write_lines(tmp_path / "p.jsonl", lines))
    (column,) = board.columns
    cell = column.find(found.metrics)
    assert cell is not None
    assert (cell["n"], cell["value"], found.score) == (12, found.score, cell["value"])


def test_scores_of_other_suffixes_and_missing_ones_are_named(place: Path, tmp_path: Path) -> None:
    path = submitted("chapterbreak", place / "run", "--set", "prefix_tokens=16")
    lines = [line for line in read_lines(path) if "#" not in line["id"]]
    first, second = list(lines[0]["prediction"])[:2]
    del lines[0]["prediction"][first]
    lines[1]["prediction"][second] = 1.0
    lines[2]["prediction"][next(iter(lines[2]["prediction"]))] = True
    lines[3]["content"] = "0" * 16
    problems = open_board("chapterbreak", place / "data").validate(write_lines(tmp_path / "p.jsonl", lines))
    assert [(one.line, one.problem) for one in problems] == [
        (1, "1 of its 6 suffixes have no score."),
        (2, f"'{second}' is the digest of no suffix of this example."),
        (3, "the score true is not a finite number."),
        (
            4,
            "1 of 26 items are of other texts than those of this board, pg19/w1/1 for one; predict on its own data.",
        ),
    ]
