"""Which words of two texts METEOR may match with one another, and at which of its three stages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

# What a word can mean; two words are synonyms where they share a meaning.
Senses = Callable[[str], frozenset[str]]
Pair = tuple[int, int]
EXACT, STEM, SYNONYM = range(3)


class Links(NamedTuple):
    """All that may be matched: of each candidate word the reference words by stage, and the classes words fall in.

    `surplus` says of each word how many more there are of it on one side than the other (candidate: positive), and
    `stem_surplus` the same of each stem, once equal words are matched: what stages have to leave over.
    """

    candidate: list[str]
    reference: list[str]
    stems: dict[str, str]
    options: list[dict[int, int]]
    surplus: dict[str, int]
    stem_surplus: dict[str, int]


def make_links(
    candidate: Sequence[str], reference: Sequence[str], stem: Callable[[str], str], senses: Senses
) -> Links:
    """All that may be matched between two lists of words without keeping an earlier stage from its most."""
    have, want = Counter(candidate), Counter(reference)
    stems = {word: stem(word) for word in have.keys() | want.keys()}
    surplus = {word: have[word] - want[word] for word in stems}
    given, wanted = Counter[str](), Counter[str]()
    for word, extra in surplus.items():
        given[stems[word]] += max(extra, 0)
        wanted[stems[word]] += max(-extra, 0)
    stem_surplus = {one: given[one] - wanted[one] for one in set(stems.values())}
    places: dict[str, list[int]] = defaultdict(list)
    for j, word in enumerate(reference):
        places[word].append(j)
    partners = _exact_and_stem(have, want, stems, surplus)
    meanings = _left_over_by_sense(want, stems, surplus, stem_surplus, senses)
    for word, found in partners.items():
        if surplus[word] > 0 and stem_surplus[stems[word]] > 0:
            near = {other for sense in senses(word) for other in meanings.get(sense, ())}
            found |= dict.fromkeys(sorted(near), SYNONYM)
    options = [
        {j: stage for other, stage in partners[word].items() for j in places[other]} for word in candidate
    ]
    return Links(list(candidate), list(reference), stems, options, surplus, stem_surplus)


def _exact_and_stem(
    have: Counter[str], want: Counter[str], stems: dict[str, str], surplus: dict[str, int]
) -> dict[str, dict[str, int]]:
    """Of each word of the candidate, which of the reference's are the same or left over with the same stem."""
    left: dict[str, list[str]] = defaultdict(list)
    for word in want:
        if surplus[word] < 0:
            left[stems[word]].append(word)
    found: dict[str, dict[str, int]] = {}
    for word in have:
        found[word] = {word: EXACT} if word in want else {}
        if surplus[word] > 0:
            found[word] |= dict.fromkeys(left.get(stems[word], ()), STEM)
    return found


def _left_over_by_sense(
    want: Counter[str],
    stems: dict[str, str],
    surplus: dict[str, int],
    stem_surplus: dict[str, int],
    senses: Senses,
) -> dict[str, list[str]]:
    """The reference's words that the stages before synonyms leave over, by what they can mean."""
    found: dict[str, list[str]] = defaultdict(list)
    for word in want:
        if surplus[word] < 0 and stem_surplus[stems[word]] < 0:
            for sense in senses(word):
                found[sense].append(word)
    return found
