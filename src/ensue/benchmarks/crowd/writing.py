"""What a response must be like: 75 to 500 words, and in the writer's own words (§5.3).

The paper states the limits of length and forbids copying, without saying how it is found. Here the longest run of
words that a response shares with the story or with another answer counts. Of the 2,000 published summaries 99 %
share at most thirteen words in a row with their story and ten with another answer; one has copied 36, and no other
more than sixteen. Seven have more than 500 words, none more than 505.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LEAST_WORDS = 75
MOST_WORDS = 500
# Longer than any run in the published summaries but the one that was plainly copied.
LONGEST_COPY = 20

_WORD = re.compile(r"\w+(?:['’]\w+)*")


class SharedRun(NamedTuple):
    """The longest stretch of words two texts share: how long it is, and where it begins in either, in words."""

    words: int
    start: int
    source_start: int


def compared_words(text: str) -> list[str]:
    """Return words as copying is looked for: without case and punctuation, so that neither hides it.

    >>> compared_words("The Mill's wheel -- stopped!")
    ['the', "mill's", 'wheel', 'stopped']
    """
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def longest_shared_run(words: Sequence[str], source: Sequence[str]) -> SharedRun:
    """Find the longest run of words in both, the first of equally long ones; its length is 0 where they share none.

    >>> longest_shared_run("he saw the old mill".split(), "the old mill burned".split())
    SharedRun(words=3, start=2, source_start=0)
    """
    # Texts that share a run of n words share one of every smaller length, so the length can be halved in on.
    best, low, high = SharedRun(0, 0, 0), 1, min(len(words), len(source))
    while low <= high:
        length = (low + high) // 2
        found = _run_of(words, source, length)
        if found is None:
            high = length - 1
        else:
            best, low = found, length + 1
    return best


def copying_fault(text: str, sources: Mapping[str, str], longest: int = LONGEST_COPY) -> str | None:
    """Name the longest run that is copied from one of the named sources, where it is longer than allowed."""
    words = compared_words(text)
    runs = {name: longest_shared_run(words, compared_words(source)) for name, source in sources.items()}
    if not runs:
        return None
    name = max(runs, key=lambda one: runs[one].words)
    run = runs[name]
    if run.words <= longest:
        return None
    copied = " ".join(words[run.start : run.start + run.words])
    return (
        f"{run.words} words in a row are those of {name} ({copied!r}), where {longest} may be; "
        "say it in your own words."
    )


def _run_of(words: Sequence[str], source: Sequence[str], length: int) -> SharedRun | None:
    """Find the first run of this length in both."""
    places: dict[tuple[str, ...], int] = {}
    for start in range(len(words) - length + 1):
        places.setdefault(tuple(words[start : start + length]), start)
    found: SharedRun | None = None
    for start in range(len(source) - length + 1):
        own = places.get(tuple(source[start : start + length]))
        if own is not None and (found is None or own < found.start):
            found = SharedRun(length, own, start)
    return found
