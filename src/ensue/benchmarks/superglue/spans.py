"""Where a mention or a word stands in a text: WSC's word indices and WiC's words, made into characters."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import NamedTuple

from ensue.benchmarks.nlu.files import Row

# WSC's indices are off by a word or two at most; a mention further away is another one.
NEAR = 3
_LEAST_SHARED = 3


class Place(NamedTuple):
    """Characters `start` to `end`; `remark` says what had to be done where the data did not simply say so."""

    start: int
    end: int
    remark: str = ""


def mention(row: Row, text: str, phrase: str, index: int) -> Place:
    """The characters of a phrase whose first word is number `index` of the text, words being divided by spaces.

    Capitals, line ends and punctuation after the phrase may differ. Where the phrase is not at its index, it is
    taken from where it stands nearest, within `NEAR` words, or from its only place; where the text has it nowhere
    (a mention put together of several, such as names joined by "and"), the words at the index stand for it. Both
    are remarked upon.
    """
    words = [match.span() for match in re.finditer(r"\S+", text)]
    if index >= len(words):
        row.refuse(f"the index {index} of {phrase!r} is beyond the {len(words)} words of the text")
    pattern = _pattern(phrase)
    places = {
        number: match.span(1)
        for number, (start, _) in enumerate(words)
        if (match := pattern.match(text, start)) is not None
    }
    if index in places:
        return Place(*places[index])
    near = sorted((abs(number - index), number) for number in places)
    if len(near) > 1 and (near[0][0] > NEAR or near[0][0] == near[1][0]):
        row.refuse(f"{phrase!r} is not at its index {index}, but at {', '.join(map(str, places))}")
    if near:
        return Place(*places[near[0][1]], "moved to where the text has their words")
    last = min(index + len(phrase.split()), len(words)) - 1
    return Place(
        words[index][0], words[last][1], "whose words the text has not in a row, taken from their index"
    )


def given_word(row: Row, text: str, start: int, end: int) -> Place:
    """A word whose characters the data gives."""
    if not start < end <= len(text) or not text[start:end].strip():
        row.refuse(f"the word's characters {start} to {end} are not within the text of {len(text)}")
    return Place(start, end)


def find_word(text: str, word: str) -> Place:
    """The characters of a word, of which the data gives only the dictionary form.

    First the word itself; then the one word that shares the longest beginning with it, of at least three letters;
    where there is none (went for go) the whole text stands for it. The last two are remarked upon.
    """
    itself = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    if itself is not None:
        return Place(*itself.span())
    shared = sorted(
        (-_shared(match.group().lower(), word.lower()), *match.span()) for match in re.finditer(r"\w+", text)
    )
    if shared and -shared[0][0] >= min(_LEAST_SHARED, len(word)):
        return Place(shared[0][1], shared[0][2], "found by their beginning")
    return Place(0, len(text), "not found, for which the whole sentence stands")


def _shared(one: str, other: str) -> int:
    """The number of letters that two words begin with alike."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _pattern(phrase: str) -> re.Pattern[str]:
    """The phrase at the beginning of a word, after any punctuation, not going on into another word."""
    words = phrase.split()
    words[-1] = words[-1].rstrip(".,;") or words[-1]
    spaced = r"\s+".join(map(re.escape, words))
    return re.compile(rf"[^\w\s]*?({spaced})(?!\w)", re.IGNORECASE)
