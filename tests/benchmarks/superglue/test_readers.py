"""Mentions and words made into characters: as given, mended and remarked upon, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.files import Row
from ensue.benchmarks.superglue.readers import NEAR, find_word, given_word, mention
from ensue.errors import EnsueError

ROW = Row("x.jsonl, line 3", {})
TEXT = 'The mayor thanked "the old  baker," because he fed Ana and Bo. He smiled.'


def _said(phrase: str, index: int, text: str = TEXT) -> tuple[str, bool]:
    place = mention(ROW, text, phrase, index)
    return text[place.start : place.end], bool(place.remark)


@pytest.mark.parametrize(
    ("phrase", "index", "said"),
    [
        ("The mayor", 0, "The mayor"),
        ("The old baker", 3, "the old  baker"),
        ("the old\nbaker.", 3, "the old  baker"),
        ("he", 7, "he"),
        ("Bo", 11, "Bo"),
        ("He", 12, "He"),
    ],
)
def test_a_phrase_at_its_index_needs_no_remark(phrase: str, index: int, said: str) -> None:
    assert _said(phrase, index) == (said, False)


def test_a_phrase_near_its_index_is_moved_and_remarked() -> None:
    assert _said("he", 8) == ("he", True)
    assert _said("the mayor", 9) == ("The mayor", True)  # far, but its only place
    assert _said("Bo and Ana", 9) == ("Ana and Bo.", True)  # nowhere: the words at the index


def test_what_could_be_two_things_is_refused() -> None:
    with pytest.raises(EnsueError, match=r"line 3: 'x' is not at its index 1, but at 0, 2"):
        mention(ROW, "x y x", "x", 1)
    with pytest.raises(EnsueError, match="'x' is not at its index 6, but at 0, 1"):
        mention(ROW, "x x a b c d e", "x", 6)
    with pytest.raises(EnsueError, match="the index 9 of 'x' is beyond the 1 words"):
        mention(ROW, "x", "x", 9)


_words = st.lists(st.sampled_from(["a", "bee", "sea.", "dee,", "E"]), min_size=1, max_size=12)


@given(words=_words, data=st.data())
def test_every_run_of_words_is_found_at_its_index(words: list[str], data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(words) - 1))
    end = data.draw(st.integers(begin + 1, len(words)))
    text, phrase = " ".join(words), " ".join(words[begin:end])
    place = mention(ROW, text, phrase, begin)
    start = sum(len(word) + 1 for word in words[:begin])
    assert (place.start, place.remark) == (start, "")
    assert text[place.start : place.end] == phrase.rstrip(".,")


@given(before=st.integers(0, 9), shift=st.integers(-NEAR, NEAR))
def test_a_lone_phrase_is_found_from_any_near_index(before: int, shift: int) -> None:
    text = " ".join(["word"] * before + ["it"] + ["word"] * 9)
    index = max(0, before + shift)
    assert text[: mention(ROW, text, "it", index).start].split() == ["word"] * before


def test_given_words_lie_within_the_text() -> None:
    assert given_word(ROW, "a bank", 2, 6)[:2] == (2, 6)
    for start, end in [(2, 2), (2, 7), (1, 2), (5, 3)]:
        with pytest.raises(EnsueError, match="are not within the text of 6"):
            given_word(ROW, "a bank", start, end)


@pytest.mark.parametrize(
    ("text", "word", "said", "remark"),
    [
        ("The riverbank is a bank.", "bank", "bank", ""),
        ("Bank on it.", "bank", "Bank", ""),
        ("He carries and cares.", "carry", "carries", "found by their beginning"),
        ("She went home.", "go", "She went home.", "not found, for which the whole sentence stands"),
    ],
)
def test_words_without_a_place_are_found(text: str, word: str, said: str, remark: str) -> None:
    place = find_word(text, word)
    assert (text[place.start : place.end], place.remark) == (said, remark)
