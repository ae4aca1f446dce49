"""Answers compared: SQuAD 2.0's rules for no answer, and cosines against scikit-learn's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from ensue.benchmarks.qags.candidates import AnswerCandidate
from ensue.benchmarks.qags.pipeline import Examined, Pair
from ensue.benchmarks.qags.questions import Proposal, Selection
from ensue.benchmarks.qags.scoring import (
    NOTHING_KEPT,
    QuestionRow,
    SummaryScore,
    by_vectors,
    f1,
    question_rows,
    scored,
    similarities,
)
from ensue.metrics.answers import token_f1
from ensue.models.card import ModelCard
from ensue.models.protocols import FoundAnswer
from tests.benchmarks.qags.toys import Letters

ANSWERS = ["", "the", "Ruth Olsen", "ruth", "two brown dogs", "brown dogs.", "Ellery"]


@given(st.sampled_from(ANSWERS), st.sampled_from(ANSWERS))
def test_f1(given_answer: str, other: str) -> None:
    value = f1(given_answer, other)
    empty = [text in ("", "the") for text in (given_answer, other)]
    assert value == (float(all(empty)) if any(empty) else token_f1(given_answer, other))
    assert value == f1(other, given_answer)


def test_cosines_are_scikit_learns_and_each_text_is_encoded_once() -> None:
    encoder = Letters()
    pairs = [(a, b) for a in ANSWERS for b in ANSWERS]
    found = dict(zip(pairs, by_vectors(encoder, pairs), strict=True))
    assert len(encoder.encoded) == len(set(encoder.encoded)) == len(ANSWERS) - 1
    vectors = Letters().encode(ANSWERS[2:])
    expected = cosine_similarity(vectors)
    for i, a in enumerate(ANSWERS[2:]):
        for j, b in enumerate(ANSWERS[2:]):
            assert found[a, b] == pytest.approx(expected[i, j], abs=1e-6)
    assert (found["", "the"], found["", "ruth"], found["ruth", ""]) == (1.0, 0.0, 0.0)


def test_by_name() -> None:
    pairs = [("Ruth Olsen", "ruth"), ("", "")]
    assert similarities("f1", pairs) == pytest.approx([2 / 3, 1.0])
    assert similarities("exact", pairs) == [0.0, 1.0]
    assert similarities("embedding", [("", "")], Letters()) == [1.0]
    with pytest.raises(ValueError, match="encoder"):
        similarities("embedding", pairs)


class Told:
    """An encoder that gives each text the vector it was told."""

    card = ModelCard(name="told", kind="encoder", source="-")

    def __init__(self, **vectors: tuple[float, float]) -> None:
        self.vectors = vectors

    def encode(self, texts: Sequence[str], **more: Any) -> Any:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def test_cosines_below_nought_count_as_nought_and_zero_vectors_are_like_nothing() -> None:
    encoder = Told(up=(0.0, 2.0), down=(0.0, -3.0), aside=(4.0, 3.0), none=(0.0, 0.0))
    pairs = [("up", "down"), ("up", "aside"), ("up", "none"), ("none", "aside"), ("Up", "up!")]
    assert by_vectors(encoder, pairs[:4]) == pytest.approx([0.0, 0.6, 0.0, 0.0])  # type: ignore[arg-type]
    assert by_vectors(encoder, []) == []  # type: ignore[arg-type]


def test_an_encoder_must_give_a_vector_a_text() -> None:
    class Short(Told):
        def encode(self, texts: Sequence[str], **more: Any) -> Any:
            return super().encode(texts)[1:]

    with pytest.raises(ValueError, match="zip"):
        by_vectors(Short(up=(0.0, 2.0), down=(0.0, -3.0)), [("up", "down")])  # type: ignore[arg-type]


def candidate(text: str, start: int) -> AnswerCandidate:
    return AnswerCandidate(text, start, start + len(text), "entity")


def answer(text: str, start: int = 0) -> FoundAnswer:
    return FoundAnswer(text, start, start + len(text), 0.5)


EXAMINED = Examined(
    Pair("A source.", "A summary."),
    (
        Proposal("Who left?", -0.5, candidate("Ruth Olsen", 4)),
        Proposal("Who came?", -0.75, candidate("Ellery", 20)),
        Proposal("What stayed?", -1.0, candidate("the mill", 30)),
    ),
    (answer("Ruth", 40), answer(""), answer("mill", 50)),
    (answer("Ruth Olsen", 60), answer("Ellery", 70), None),
    (Selection((0, 1), 1), Selection((0,), 0), Selection((), 0)),
)


def test_a_summary_scores_the_mean_over_the_questions_of_a_selection() -> None:
    troubled = Examined(Pair("A source.", ""), trouble="summaries without words")
    assert scored([EXAMINED, troubled, EXAMINED]) == [
        SummaryScore(pytest.approx(1 / 3), (pytest.approx(2 / 3), 0.0)),  # type: ignore[arg-type]
        SummaryScore(0.0, (), "summaries without words"),
        SummaryScore(pytest.approx(1 / 3), (pytest.approx(2 / 3), 0.0)),  # type: ignore[arg-type]
    ]
    assert scored([EXAMINED], 1)[0].similarities == pytest.approx((2 / 3,))
    assert scored([EXAMINED], 1, "exact") == [SummaryScore(0.0, (0.0,))]
    assert scored([EXAMINED], 2) == [SummaryScore(0.0, (), NOTHING_KEPT)]
    encoder = Told(**{"Ruth": (1.0, 0.0), "Ruth Olsen": (3.0, 4.0), "Ellery": (0.0, 1.0)})
    (found,) = scored([EXAMINED], 0, "embedding", encoder)  # type: ignore[arg-type]
    assert found == SummaryScore(pytest.approx(0.3), (pytest.approx(0.6), 0.0))  # type: ignore[arg-type]
    assert scored([]) == []
    with pytest.raises(ValueError, match="Question 2 was not put to the source"):
        scored([replace(EXAMINED, selections=(Selection((2,), 0),))])


def test_every_field_of_a_question_and_what_fills_up() -> None:
    rows = question_rows(EXAMINED, SummaryScore(0.5, (0.75, 0.25)))
    assert rows == (
        QuestionRow("Who left?", "Ruth Olsen", "Ruth", "Ruth Olsen", 0.75, -0.5, 40, 44, False),
        # The summary has no answer, so what was asked about is in doubt.
        QuestionRow("Who came?", "Ellery", "", "Ellery", 0.25, -0.75, 20, 26, True),
    )
    # A question that counts twice is shown once, and what was not put to the source has no answer there.
    twice = replace(EXAMINED, selections=(Selection((2, 0, 2), 0),))
    found = question_rows(twice, SummaryScore(0.5, (0.1, 0.2, 0.1)))
    assert [(row.question, row.by_source, row.similarity, row.padded) for row in found] == [
        ("What stayed?", "", 0.1, False),
        ("Who left?", "Ruth Olsen", 0.2, False),
    ]
    every = replace(EXAMINED, selections=(Selection((1, 0), 2),))
    assert [row.padded for row in question_rows(every, SummaryScore(0.5, (0.1, 0.2)))] == [True, True]
    with pytest.raises(ValueError, match="zip"):
        question_rows(EXAMINED, SummaryScore(0.5, (0.75,)))
