"""Many summaries at once: the same scores as one by one, troubles named, bad files refused."""

from __future__ import annotations

import json

import pytest

from ensue.benchmarks.qags.choices import DEFAULT
from ensue.benchmarks.qags.inspect import inspect
from ensue.benchmarks.qags.many import read_pairs, score_pairs, write_rows
from ensue.benchmarks.qags.pipeline import EMPTY, HALVED, NO_CANDIDATES, NO_SOURCE, TOO_LONG, Parts
from ensue.errors import EnsueError, TooLong
from tests.benchmarks.qags.toys import FAITHFUL, NAMELESS, SOURCE, WRONG, NameAfter, NameFinder, WordsBefore


def parts() -> Parts:
    return Parts(NameFinder(), WordsBefore(), NameAfter())


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def test_each_row_is_what_an_inspection_of_it_says(tmp_path) -> None:
    path = write(
        tmp_path / "pairs.jsonl",
        {"source": SOURCE, "summary": FAITHFUL},
        {"source": SOURCE, "summary": WRONG, "id": "wrong"},
        {"source": SOURCE, "summary": " "},
        {"source": SOURCE, "summary": NAMELESS},
    )
    rows = list(score_pairs(read_pairs(path), parts(), DEFAULT))
    assert [row["id"] for row in rows] == ["1", "wrong", "3", "4"]
    for row, summary in zip(rows, (FAITHFUL, WRONG), strict=False):
        alone = inspect(SOURCE, summary, parts(), DEFAULT)
        assert row["score"] == alone.score
        assert row["questions"] == [line._asdict() for line in alone.lines]
    assert rows[0]["score"] > rows[1]["score"]
    assert rows[1]["inconsistent"]
    assert not rows[0]["inconsistent"]
    assert [(row["score"], row["trouble"]) for row in rows[2:]] == [(0.0, EMPTY), (0.0, NO_CANDIDATES)]
    write_rows(rows, tmp_path / "out" / "scores.jsonl")
    lines = (tmp_path / "out" / "scores.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows


class Impatient(WordsBefore):
    """Asks about no text of more than so many characters."""

    def ask(self, contexts, answers, **search):
        if long := [place for place, text in enumerate(contexts) if len(text) > 150]:
            raise TooLong("A text is too long.", long)
        return super().ask(contexts, answers, **search)


def test_one_bad_pair_ends_nothing_and_is_named(tmp_path) -> None:
    path = write(
        tmp_path / "pairs.jsonl",
        {"source": SOURCE, "summary": FAITHFUL, "id": "first"},
        {"source": SOURCE, "summary": f"{FAITHFUL} {WRONG}", "id": "long"},
        {"source": " \n", "summary": WRONG, "id": "sourceless"},
        {"source": "", "summary": "", "id": "nothing"},
        {"source": SOURCE, "summary": WRONG, "id": None},
        {"source": SOURCE, "summary": FAITHFUL + " \ud83d", "id": "halved"},
        {"source": SOURCE + " \udc00", "summary": FAITHFUL, "id": "halved source"},
    )
    asks = Impatient()
    rows = list(score_pairs(read_pairs(path), Parts(NameFinder(), asks, NameAfter()), DEFAULT))
    assert [row["id"] for row in rows] == [
        "first",
        "long",
        "sourceless",
        "nothing",
        "5",
        "halved",
        "halved source",
    ]
    troubles = [None, TOO_LONG, NO_SOURCE, EMPTY, None, HALVED, HALVED]
    assert [row.get("trouble") for row in rows] == troubles
    write_rows(rows, tmp_path / "scores.jsonl")
    assert [row["score"] for row in rows[1:4]] == [0.0, 0.0, 0.0]
    for row, summary in ((rows[0], FAITHFUL), (rows[4], WRONG)):
        assert row["score"] == inspect(SOURCE, summary, parts(), DEFAULT).score
    # Nothing is asked about a summary that there is no source to hold it against.
    alone = write(tmp_path / "alone.jsonl", {"source": "", "summary": WRONG})
    asks.asked.clear()
    list(score_pairs(read_pairs(alone), Parts(NameFinder(), asks, NameAfter()), DEFAULT))
    assert asks.asked == []


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"source": SOURCE}], "line 1.*summary"),
        ([{"summary": "x"}], "line 1.*source"),
        ([{"source": None, "summary": "x"}], "line 1.*source"),
        ([{"source": "a", "summary": "x", "id": ["1"]}], "line 1.*id"),
        ([{"source": "a", "summary": "x", "id": "\ud83d"}], "line 1.*half a character"),
        ([{"source": "a", "summary": 3}], "line 1.*summary"),
        ([{"source": "a", "summary": "x", "id": 1}, {"source": "a", "summary": "y", "id": "1"}], "'1' twice"),
        ([], "no rows"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, rows, words) -> None:
    with pytest.raises(EnsueError, match=words):
        read_pairs(write(tmp_path / "pairs.jsonl", *rows))
