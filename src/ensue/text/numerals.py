"""Numbers as chapters are numbered with them: Roman, Arabic and spelled out, as patterns and as values."""

from __future__ import annotations

import re

_ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_TEENS = [
    "ten",
    "eleven",
    "twelve",
    *(f"{stem}teen" for stem in ("thir", "four", "fif", "six", "seven", "eigh", "nine")),
]
_ORDINAL_ONES = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]
_ORDINAL_TENS = [f"{ten[:-1]}ieth" for ten in _TENS]
_ORDINAL_TEENS = ["tenth", "eleventh", "twelfth", *(f"{teen}th" for teen in _TEENS[3:])]


def _valued(ones: list[str], teens: list[str], tens: list[str]) -> dict[str, int]:
    """The words below a hundred with their values, the tens before a hyphen always the cardinal ones."""
    values = {word: number for number, word in enumerate(ones + teens, 1)}
    for ten, (word, cardinal) in enumerate(zip(tens, _TENS, strict=True), 2):
        values[word] = 10 * ten
        values |= {f"{cardinal}-{one}": 10 * ten + number for number, one in enumerate(ones, 1)}
    return values


_CARDINALS = _valued(_ONES, _TEENS, _TENS)
_ORDINALS = _valued(_ORDINAL_ONES, _ORDINAL_TEENS, _ORDINAL_TENS)
_LETTERS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def _pattern(values: dict[str, int]) -> str:
    # Longest first, so that "seventeen" is not read as "seven".
    return "|".join(word.replace("-", r"[- ]") for word in sorted(values, key=len, reverse=True))


# Old books write IIII and XXXX too; no work has as many as 400 chapters numbered in Roman.
ROMAN = r"(?=[IVXLC])C{0,3}(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})"
SMALL_ROMAN = ROMAN.replace("(?=[IVXLC])", "(?=[ivxlc])").translate(str.maketrans("IVXLC", "ivxlc"))
ARABIC = r"\d{1,3}"
CARDINAL = (
    rf"(?:one[ -]hundred(?:[ -]and)?[ -](?:{_pattern(_CARDINALS)})|one[ -]hundred|{_pattern(_CARDINALS)})"
)
ORDINAL = rf"(?:{_pattern(_ORDINALS)}|last)"

_HUNDRED = re.compile(r"one[ -]hundred(?:[ -]and)?[ -]?")


def roman_value(numeral: str) -> int:
    """The value of a Roman numeral.

    >>> roman_value("XIV")
    14
    """
    values = [_LETTERS[letter] for letter in numeral.upper()]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def word_value(words: str) -> int | None:
    """The value of a number that is spelled out, None for "last".

    >>> word_value("Forty-second"), word_value("one hundred and two")
    (42, 102)
    """
    words = words.lower()
    hundred = _HUNDRED.match(words)
    rest = words[hundred.end() :] if hundred else words
    rest = rest.replace(" ", "-")
    below = _CARDINALS.get(rest, _ORDINALS.get(rest))
    if hundred:
        return 100 + (below or 0)
    return below
