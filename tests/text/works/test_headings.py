"""Chapter headings: indices are split off exactly, and running text is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.text.works.headings import parse_heading, roman_value, split_index, word_value

SPLITS = [
    ("CHAPTER III.", "\n\nIt was late."),
    ("CHAPTER III.", " THE LETTER\n\nIt was late."),
    ("CHAPTER III", "—THE LETTER\n\nIt was late."),
    ("CHAPTER III", " IN WHICH I LOSE A LETTER\n\nIt was late."),
    ("CHAP. II.", " THE LETTER\n\nIt was late."),
    ("Chapter the Third", "\n\nIt was late."),
    ("Chapter the Last.", "\n\nIt was late."),
    ("Chapter Forty-two", "\nThe Letter\n\nIt was late."),
    ("Chapter 12:", " Title"),
    ("CHAPTER 10", "Parties at Sea\n\nIt was late."),
    ("chapter 3", "\n\nit was late."),
    ("_Chapter I_", "\n\nIt was late."),
    ("**Chapter 3**", "\n\nIt was late."),
    ("## Chapter 3", "\n\nIt was late."),
    ("THE FIRST CHAPTER", ""),
    ("BOOK II\nCHAPTER XIV", "\n\nIt was late."),
    ("BOOK II.\nTHE MILL.\nCHAPTER XIV.", "\nA Letter\n\nIt was late."),
    ("PART ONE--The Mill\n1", "\nThe Letter\n\nIt was late."),
    ("Phase the First: The Mill\nI", "\n\nIt was late."),
    ("VOLUME II. CHAPTER 3.", "\n\nIt was late."),
    ("CHAPTER I\nI", "\n\nIt was late."),
    ("— I —\n[ 1 ]", "\n\nIt was late."),
    (
        "PART ONE",
        "\n\nIt was late, and the rain had come in under the door of the mill and over the floor of it.",
    ),
    ("IV.", "\n\nIt was late."),
    ("V.", ""),
    ("I", ""),
    ("I", "\n\nIt was late."),
    ("I", " The Old Mill\n\nIt was late."),
    ("XXI", " The Old Mill\n\nIt was late."),
    ("12", "\n\nIt was late."),
    ("3.", " The Letter"),
    ("3.", " The letter\n\nIt was late."),
    ("01", " My Early Home\n\nIt was late."),
    ("_One_", "\nDREAMS\n\nIt was late."),
    ("LETTER IV", "\n\nIt was late."),
    ("ADVENTURE I.", " A MISSING SPOON\n\nIt was late."),
]

NO_INDEX = [
    "",
    "\n\n",
    "I walked down the street.",
    "I Go to Town\n\nIt was late.",
    "I. e. the miller, who was late.",
    "Chapter and verse were quoted",
    "chapter about the mill, which is so short that it hardly counts.",
    "Chapter one of the book was lost.",
    "Part of it was lost.",
    "Part I played in this was small.",
    "Book two, please, he said.",
    "The first chapter was long.",
    "C. Rowe was here.\n\nShe left.",
    "One day he left.",
    "MIX\n\nIt was late.",
    "Mild.\n\nIt was late.",
    "“I,” he said.",
    "12 men walked by.",
    "1846 was a bad year.",
]

WORDS = st.sampled_from(
    ["the", "miller", "walked", "in", "rain", "and", "I", "saw", "him", "Mary", "one", "two", "day"]
)


@pytest.mark.parametrize(("index", "rest"), SPLITS)
def test_an_index_is_split_off(index: str, rest: str) -> None:
    assert split_index(index + rest) == (index, rest)


@pytest.mark.parametrize("text", NO_INDEX)
def test_other_text_has_no_index(text: str) -> None:
    assert split_index(text) == ("", text)


@given(st.text(max_size=200) | st.text(alphabet="CHAPTERchapterIVXLivx123.:—- \n\tOneThe[]_*", max_size=60))
def test_the_two_parts_are_the_text(text: str) -> None:
    index, rest = split_index(text)
    assert index + rest == text


def roman(number: int) -> str:
    """An independent reference: subtractive notation by a table."""
    values = [
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ]
    numeral = ""
    for value, letters in values:
        while number >= value:
            numeral, number = numeral + letters, number - value
    return numeral


@given(
    st.integers(1, 200),
    st.sampled_from(
        ["CHAPTER {}", "Chapter {}", "CHAP. {}", "LETTER {}", "{}", "_{}_", "[ {} ]", "Book the {}"]
    ),
    st.sampled_from(["", "."]),
    st.sampled_from(["", "\n\nIt was late.", "\nA Letter\n\nIt was late."]),
)
def test_roman_numerals_are_read_in_every_style(number: int, style: str, stop: str, rest: str) -> None:
    index = style.format(roman(number)) + stop
    assert split_index(index + rest) == (index, rest)
    mark = parse_heading(index)
    assert mark is not None
    assert mark.number == number == roman_value(roman(number))


@given(st.lists(WORDS, min_size=2, max_size=12), st.sampled_from(".?!"))
def test_sentences_have_no_index(words: list[str], stop: str) -> None:
    sentence = " ".join(words)
    sentence = sentence[0].upper() + sentence[1:] + stop
    assert split_index(sentence) == ("", sentence)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("one", 1),
        ("Seventeen", 17),
        ("fortieth", 40),
        ("NINETY-NINTH", 99),
        ("one hundred", 100),
        ("last", None),
    ],
)
def test_numbers_in_words(words: str, value: int | None) -> None:
    assert word_value(words) == value
