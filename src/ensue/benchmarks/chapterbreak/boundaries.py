"""Examples at other discourse boundaries: before a cause, and before something is said."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ensue.benchmarks.chapterbreak.chapters import Draft, Laid
from ensue.benchmarks.chapterbreak.negatives import draw, generator, in_words
from ensue.benchmarks.chapterbreak.words import Sizes

Inner = Literal["cause", "dialogue"]

PER_WORK: dict[Inner, int] = {"cause": 10, "dialogue": 20}
# Less than this is no context to speak of.
LEAST_CONTEXT = 128

_CUE = re.compile(r"\b(?P<at>because|due\s+to|owing\s+to)\b", re.IGNORECASE)
# A quotation mark that opens: at the start of a paragraph or after the end of a sentence, and something follows.
# A straight single one may be an apostrophe, so it must open a paragraph and be none of the usual short forms.
_OPENING = re.compile(
    r"""(?:\A|\n)\s*(?P<paragraph>["“‘]|'(?!(?:tis|twas|twere|twill|twould|em|cause|bout|til)\b))(?=[^\s"“”])"""
    r"""|[.!?…][”"’')\]]*\s+(?P<sentence>["“‘])(?=[^\s"“”])""",
    re.IGNORECASE,
)


def cause_positions(text: str) -> list[int]:
    """Where because, due to or owing to begins.

    >>> cause_positions("Because it rained, due\\nto the season, nothing became of it.")
    [0, 19]
    """
    return [match.start("at") for match in _CUE.finditer(text)]


def dialogue_positions(text: str) -> list[int]:
    """Where a quotation mark opens a paragraph or a sentence.

    >>> dialogue_positions('"Come," she said. "It is late." Nobody "came".')
    [0, 18]
    """
    return [match.start(match.lastgroup or 0) for match in _OPENING.finditer(text)]


def positions(boundary: Inner, laid: Laid, suffix: int) -> list[int]:
    """Where in a work a suffix of this kind can begin, in text order.

    Headings are not looked at, and a suffix lies within one chapter: one that ran over a break would show the
    next chapter's index.
    """
    find = cause_positions if boundary == "cause" else dialogue_positions
    text = laid.words.text
    found: list[int] = []
    for begin, end in laid.bodies:
        last = laid.words.number(end) - suffix
        found += [
            begin + place for place in find(text[begin:end]) if laid.words.number(begin + place) <= last
        ]
    return found


def later_apart(numbers: Sequence[int], apart: int) -> list[int]:
    """How many later ones, each `apart` from the one before it, can at most be chosen after each of the numbers.

    >>> later_apart([0, 5, 10, 12, 25], 10)
    [2, 1, 1, 1, 0]
    """
    most = [0] * (len(numbers) + 1)  # with the number itself
    for place in range(len(numbers) - 1, -1, -1):
        most[place] = 1 + most[bisect_left(numbers, numbers[place] + apart)]
    return [count - 1 for count in most[:-1]]


def inner_breaks(
    boundary: Inner, work: str, laid: Laid, sizes: Sizes, seed: int, count: int, per_work: int | None
) -> tuple[list[Draft], Counter[str]]:
    """Up to `per_work` examples at random places that have enough before them and enough like them after them."""
    offsets = positions(boundary, laid, sizes.suffix)
    numbers = [laid.words.number(offset) for offset in offsets]
    eligible = [
        place
        for place, later in enumerate(later_apart(numbers, sizes.suffix))
        if later >= count and numbers[place] >= LEAST_CONTEXT
    ]
    skipped: Counter[str] = Counter()
    if not eligible:
        skipped[f"works with too few places for a {boundary} boundary"] += 1
        return [], skipped

    def suffix_at(place: int) -> str:
        return sizes.cut(laid.words.after(offsets[place], sizes.suffix))

    wanted = PER_WORK[boundary] if per_work is None else per_work
    random = generator(seed, work, boundary, "selection")
    chosen = sorted(int(n) for n in random.choice(eligible, min(wanted, len(eligible)), replace=False))
    drafts = []
    for place in chosen:
        gold = suffix_at(place)
        later = _apart(numbers, place, sizes.suffix, count, generator(seed, work, boundary, place))
        negatives = draw(gold, map(suffix_at, later), count)
        if len(negatives) < count:
            skipped[f"{boundary} boundaries with fewer than {in_words(count)} different later ones"] += 1
        else:
            drafts.append(Draft(sizes.context(laid.words, offsets[place]), gold, tuple(negatives)))
    return drafts, skipped


def _apart(
    numbers: Sequence[int], gold: int, apart: int, count: int, random: np.random.Generator
) -> list[int]:
    """Places of `count` later numbers, none of which overlaps the gold's suffix or another one's."""
    first = bisect_left(numbers, numbers[gold] + apart)
    chosen: list[int] = []
    for place in random.permutation(np.arange(first, len(numbers))):
        if all(abs(numbers[place] - numbers[other]) >= apart for other in chosen):
            chosen.append(int(place))
            if len(chosen) == count:
                return chosen
    # Where there is little room a random choice can block the others; going from left to right never does.
    chain, place = [], first
    while place < len(numbers):
        chain.append(place)
        place = bisect_left(numbers, numbers[place] + apart)
    return [chain[int(n)] for n in random.choice(len(chain), count, replace=False)]
