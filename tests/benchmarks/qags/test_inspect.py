"""One summary: its pieces make it up again, doubts are where answers differ, and bad texts are one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.choices import STRICT, Preset
from ensue.benchmarks.qags.inspect import Line, inspect, pieces_of
from ensue.benchmarks.qags.pipeline import Parts
from ensue.errors import EnsueError
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


def parts() -> Parts:
    return Parts(NameFinder(), WordsBefore(), NameAfter())


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
        Line("?", "x", "x" if has else "", "y", value, 0.0, a, b, fills)
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
