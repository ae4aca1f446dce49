"""Sentences where a text runs on, lines where it is set in lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.text.sentences import split_sentences
from ensue.text.units import split_units

VERSE = (
    "The harbour sleeps, the ropes are slack,\nThe gulls have gone to bed.\n"
    "And no one calls the fishers back\nFrom where the tide has led."
)
VERSE_SENTENCES = [
    "The harbour sleeps, the ropes are slack, The gulls have gone to bed.",
    "And no one calls the fishers back From where the tide has led.",
]
CODE = "def area(width, height):\n    size = width * height\n    return size\n\nprint(area(2, 3))"


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("eggs\nmilk\nbrown bread", ["eggs", "milk", "brown bread"]),
        ("- eggs\n- two litres of milk\n- bread", ["- eggs", "- two litres of milk", "- bread"]),
        (VERSE, VERSE_SENTENCES),
        (VERSE.replace(",", "").replace(".", ""), VERSE.replace(",", "").replace(".", "").split("\n")),
        ("eggs,\nmilk,\nbrown bread", ["eggs,", "milk,", "brown bread"]),
        (CODE, ["def area(width, height):", "size = width * height", "return size", "print(area(2, 3))"]),
        ("ANNA: Where are you?\nBEN: Here. Come in!", ["ANNA: Where are you?", "BEN: Here.", "Come in!"]),
        ("Soup\n\nIt is hot. Take\ncare.", ["Soup", "It is hot.", "Take care."]),
        ("天气很好。我们去吧！\n\n你来吗？", ["天气很好。", "我们去吧！", "你来吗？"]),
        ("***\n\nThe end. ...\n\n* * *", ["*** The end. ... * * *"]),
        ("...", ["..."]),
        (" \n \n", []),
    ],
)
def test_what_is_set_in_lines_is_read_in_lines(text, units):
    assert split_units(text) == units


def wrapped(text: str, width: int) -> str:
    """Break a text at a width, as people do by hand."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


PROSE = (
    "When the rain stopped, Mrs Orr opened the window and listened for the train from Leeds. It was late again, and "
    "nobody on the platform seemed to mind very much. A boy was selling apples; he had sold eleven since the morning."
)


@pytest.mark.parametrize("width", [56, 60, 72, 80, 100])
def test_running_text_is_the_same_however_it_was_broken(width):
    assert split_units(wrapped(PROSE, width)) == split_sentences(PROSE) == split_units(PROSE)


@given(st.text(alphabet="aB 1.\n-*:;()。你\u2028\t", max_size=80))
def test_no_character_is_added_dropped_or_moved(text):
    units = split_units(text)
    assert "".join("".join(units).split()) == "".join(text.split())
    assert all(unit == " ".join(unit.split()) and unit for unit in units)
    assert len(units) <= 1 or all(any(char.isalnum() for char in unit) for unit in units)


def test_twice_the_text_has_twice_the_units():
    text = f"{PROSE}\n\n{VERSE}\n\n"
    assert split_units(text * 500) == split_units(text) * 500
