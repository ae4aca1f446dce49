"""Summaries of one's own: pieces make them up again, doubts are where answers differ, bad texts are one sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.atomic import write_json_lines
from ensue.benchmarks.qags.inspecting import inspect, pieces_of, read_pairs, score_pairs
from ensue.benchmarks.qags.pipeline import EMPTY, HALVED, NO_CANDIDATES, NO_SOURCE, TOO_LONG, QagsModels
from ensue.benchmarks.qags.questions import DEFAULT, STRICT, Preset
from ensue.benchmarks.qags.scoring import QuestionRow
from ensue.errors import EnsueError, TooLong
from tests.benchmarks.qags.toys import (
    FAITHFUL,
    NAMELESS,
    SOURCE,
    WRONG,
    Letters,
    NameAfter,
    NameFinder,
    WordsBefore,
)

UNFILLED = Preset(STRICT.asking, replace(STRICT.keeping, padding="no"))


def parts() -> QagsModels:
    return QagsModels(NameFinder(), WordsBefore(), NameAfter())


def test_doubts_are_the_names_that_differ() -> None:
    found = inspect(SOURCE, WRONG, parts(), STRICT)
    assert [piece.text for piece in found.pieces if piece.inconsistent] == ["Hanna", "Lund", "Brandt"]
    borne = [p.text for p in found.pieces if p.similarity is not None and not p.inconsistent]
    assert borne == ["Tobias"]
    assert "".join(piece.text for piece in found.pieces) == WRONG
    told = found.as_dict()
    assert [WRONG[one["start"] : one["end"]] for one in told["inconsistent"]] == ["Hanna", "Lund", "Brandt"]
    assert told["score"] == sum(line["similarity"] for line in told["questions"]) / len(told["questions"])
    assert [line.padded for line in found.lines] == [False] * 8 + [True] * 4


def test_a_faithful_summary_has_none() -> None:
    found = inspect(SOURCE, FAITHFUL, parts(), UNFILLED)
    assert found.score == 1.0
    assert not any(piece.inconsistent for piece in found.pieces)


def test_answers_can_be_compared_by_vectors() -> None:
    found = inspect(SOURCE, WRONG, parts(), UNFILLED, similarity="embedding", encoder=Letters())
    assert 0.25 < found.score < 1.0


@pytest.mark.parametrize(
    ("source", "summary", "words"),
    [
        ("", FAITHFUL, "The source has no text"),
        (SOURCE, " \n", "The summary has no text"),
        (SOURCE, NAMELESS, "summaries without an answer to ask about"),
    ],
)
def test_what_cannot_be_questioned_is_one_sentence(source: str, summary: str, words: str) -> None:
    with pytest.raises(EnsueError, match=words):
        inspect(source, summary, parts(), STRICT)


span = st.tuples(st.integers(-2, 24), st.integers(-2, 24))
lines = st.lists(st.tuples(span, st.floats(0, 1), st.booleans(), st.booleans()), max_size=6)


@given(lines)
def test_every_character_has_the_mean_of_its_questions(
    drawn: list[tuple[tuple[int, int], float, bool, bool]],
) -> None:
    summary = "Ruth steered the ferry"
    told = [
        QuestionRow("?", "x", "x" if has else "", "y", value, 0.0, a, b, fills)
        for (a, b), value, has, fills in drawn
    ]
    placed = [one for one in drawn if one[2] and 0 <= one[0][0] < one[0][1] <= len(summary)]
    if not all(fills for *_, fills in placed):
        placed = [one for one in placed if not one[3]]
    pieces = pieces_of(summary, told)
    assert "".join(piece.text for piece in pieces) == summary
    for piece in pieces:
        for place in range(piece.start, piece.end):
            over = [value for (a, b), value, _, _ in placed if a <= place < b]
            assert piece.questions == len(over)
            assert piece.similarity == (pytest.approx(sum(over) / len(over)) if over else None)


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
    write_json_lines(tmp_path / "scores.jsonl", rows)
    lines = (tmp_path / "scores.jsonl").read_text("utf-8").splitlines()
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
    rows = list(score_pairs(read_pairs(path), QagsModels(NameFinder(), asks, NameAfter()), DEFAULT))
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
    write_json_lines(tmp_path / "scores.jsonl", rows)
    assert [row["score"] for row in rows[1:4]] == [0.0, 0.0, 0.0]
    for row, summary in ((rows[0], FAITHFUL), (rows[4], WRONG)):
        assert row["score"] == inspect(SOURCE, summary, parts(), DEFAULT).score
    # Nothing is asked about a summary that there is no source to hold it against.
    alone = write(tmp_path / "alone.jsonl", {"source": "", "summary": WRONG})
    asks.asked.clear()
    list(score_pairs(read_pairs(alone), QagsModels(NameFinder(), asks, NameAfter()), DEFAULT))
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
        (
            [{"source": "a", "summary": "x", "id": 1}, {"source": "a", "summary": "y", "id": "1"}],
            "'1' is there twice",
        ),
        ([], "no rows"),
    ],
)
def test_a_bad_file_is_one_sentence(tmp_path, rows, words) -> None:
    with pytest.raises(EnsueError, match=words):
        read_pairs(write(tmp_path / "pairs.jsonl", *rows))
