"""Which sentence a token counts in, and where sentences end in the text they were taken from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.models.request import Score
from ensue.scoring.surprisal import (
    SentenceSurprisal,
    ends_in,
    joined_ends,
    profile_version,
    sentence_surprisal,
)
from ensue.text.sentences import split_sentences


def scored(*tokens: tuple[int, int, float]) -> Score:
    logprobs = tuple(x for _, _, x in tokens)
    return Score(sum(logprobs), len(tokens), 0.0, logprobs, tuple((a, b) for a, b, _ in tokens))


def test_a_token_counts_where_its_last_character_lies() -> None:
    """Two sentences "ab" and "cd" with a space between: what reaches past the first counts in the second."""
    score = scored((0, 1, -1.0), (1, 2, -2.0), (2, 3, -4.0), (2, 4, -8.0), (4, 5, -16.0))
    assert sentence_surprisal([2, 5], score) == [SentenceSurprisal(1.5, 2), SentenceSurprisal(28 / 3, 3)]


def test_what_stands_after_the_last_sentence_counts_in_it_and_a_sentence_may_have_none() -> None:
    score = scored((0, 2, -1.0), (7, 9, -2.0), (9, 12, -3.0))
    assert sentence_surprisal([2, 5, 9], score) == [
        SentenceSurprisal(1.0, 1),
        SentenceSurprisal(None, 0),
        SentenceSurprisal(2.5, 2),
    ]


def test_without_detail_there_is_none() -> None:
    bare = Score(-1.0, 1, -1.0)
    assert sentence_surprisal([1], bare) is None
    assert sentence_surprisal([1], bare._replace(token_logprobs=(-1.0,))) is None
    assert profile_version("x", ["a"], [0], [1], bare) is None


def test_a_profile_by_value() -> None:
    score = scored((0, 2, -1.23456), (4, 5, -2.0))
    assert profile_version("name", ["ab", "c", "d"], [1, 0, 2], [2, 3, 5], score) == {
        "name": "name",
        "order": [1, 0, 2],
        "sentences": ["ab", "c", "d"],
        "surprisal": [1.2346, None, 2.0],
        "tokens": [1, 0, 1],
    }


@pytest.mark.parametrize("joiner", [" ", "", "\n\n"])
def test_joined_sentences_end_where_they_were_put(joiner: str) -> None:
    sentences = ["One.", "Two two.", "3"]
    text = joiner.join(sentences)
    assert [text[:end] for end in joined_ends(sentences, joiner)] == [
        joiner.join(sentences[: i + 1]) for i in range(3)
    ]


@given(st.text("ab. \n\tA\u2003é\u00a0", max_size=80))
def test_sentences_end_in_their_text_with_their_own_last_letter(text: str) -> None:
    sentences = split_sentences(text)
    ends = ends_in(text, sentences)
    assert ends == sorted(set(ends))
    begin = 0
    for sentence, end in zip(sentences, ends, strict=True):
        assert "".join(text[begin:end].split()) == "".join(sentence.split())
        assert text[end - 1] == sentence[-1]
        begin = end


def test_tokens_and_their_places_belong_together() -> None:
    with pytest.raises(ValueError, match="zip"):
        sentence_surprisal([2], scored((0, 1, -1.0))._replace(token_spans=((0, 1), (1, 2))))
    with pytest.raises(ValueError, match="zip"):
        sentence_surprisal([2], scored((0, 1, -1.0), (1, 2, -1.0))._replace(token_spans=((0, 1),)))


def test_no_sentences_end_nowhere() -> None:
    assert joined_ends([], " ") == []
    assert ends_in(" ", []) == []
