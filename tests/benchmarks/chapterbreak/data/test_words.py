"""Cuts by words and by tokens."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.chapterbreak.data.words import Sizes, Words


@given(st.text(alphabet="ab \n\t\u2003\u3000é", max_size=60), st.integers(0, 60), st.integers(1, 8))
def test_words_are_cut_as_by_splitting(text: str, offset: int, count: int) -> None:
    words, offset = Words(text), min(offset, len(text))
    assert len(words) == len(text.split())
    # An offset within a word counts that word as begun.
    assert words.number(offset) == sum(
        not text[place].isspace() and (place == 0 or text[place - 1].isspace()) for place in range(offset)
    )
    before = text[:offset].split()
    assert words.before(offset, count).split() == before[-count:]
    begins = offset == 0 or text[offset - 1 : offset].isspace()
    if begins:
        assert words.after(offset, count).split() == text[offset:].split()[:count]
    assert words.before(offset, 99) == text[:offset].strip()


class Letters:
    """A tokenizer whose tokens are characters."""

    name = "letters"

    def count(self, text: str) -> int:
        return len(text)

    def last(self, text: str, count: int) -> str:
        return text[-count:]

    def first(self, text: str, count: int) -> str:
        return text[:count]


def test_sizes_are_in_words_or_tokens() -> None:
    text = "one two three four five six"
    words, sizes, tokens = Words(text), Sizes(2, 3), Sizes(2, 3, Letters())
    assert (sizes.unit, tokens.unit) == ("words", "tokens")
    assert (sizes.length(text), tokens.length(text)) == (6, len(text))
    assert sizes.context(words, text.index("four")) == "two three"
    assert tokens.context(words, text.index("four")) == "ee"
    assert sizes.cut("one two three four") == "one two three"
    assert tokens.cut("one two three four") == "one"
    long = " ".join(str(n) for n in range(100))
    # So many words more than a suffix has, and no further than where it ends.
    assert sizes.start(Words(long), 0, len(long)).split() == [str(n) for n in range(43)]
    assert sizes.start(Words(long), 0, 4) == "0 1"
