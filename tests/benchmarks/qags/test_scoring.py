"""Answers compared: SQuAD 2.0's rules for no answer, and cosines against scikit-learn's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from ensue.benchmarks.qags.scoring import by_vectors, f1, similarities
from ensue.metrics.answers import token_f1
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
