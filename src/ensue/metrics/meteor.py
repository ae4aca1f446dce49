"""METEOR: words matched exactly, by stem or as synonyms, scored by how many there are and how few chunks they form.

The parameters are the classic ones (Lavie and Agarwal, 2007; NLTK has the same): recall weighs nine times as much as
precision, and half the score is lost where every match stands alone. Two words are synonyms where a base form of each
is in one synset of WordNet. Words are matched in three stages, each on what
the stages before left over. Which of several equal words is taken is free, and taken so that the matches fall into
as few chunks as possible. Finding the fewest is hard in general: as long as no more than a few hundred partial
alignments have to be kept, all are followed, which is exact; longer texts are aligned longest chunk first.

Figures printed in papers often come from NLTK, which takes the last of equal words and so finds far more chunks:
`meteor_nltk.py` has that score under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ensue.metrics.meteor_links import Pair, Senses, make_links
from ensue.metrics.meteor_search import fewest_chunks
from ensue.metrics.meteor_tiles import tiled
from ensue.metrics.texts import stem

# Words, numbers with their marks inside, and single marks.
_TOKEN = re.compile(r"\w+(?:['’.,-]\w+)*|[^\w\s]")
# Partial alignments that are followed at once before the search is given up for the quick way.
_STATES = 256


class Alignment(NamedTuple):
    """Which word of the candidate goes with which of the reference, in the candidate's order."""

    pairs: tuple[Pair, ...]
    chunks: int


class Parameters(NamedTuple):
    """How recall is weighed against precision, and how steep and how large the penalty for chunks is."""

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5


class Meteor(NamedTuple):
    """METEOR of one candidate and one reference, with what it was made of."""

    score: float
    precision: float
    recall: float
    matches: int
    chunks: int


CLASSIC = Parameters()
_NO_SENSES: frozenset[str] = frozenset()


def no_senses(word: str) -> frozenset[str]:
    """Leaves out METEOR's third stage."""
    return _NO_SENSES


def meteor(
    candidate: Sequence[str],
    reference: Sequence[str],
    senses: Senses,
    parameters: Parameters = CLASSIC,
) -> Meteor:
    """METEOR of two lists of words in lower case; `senses` is WordNet's (`ensue.text.wordnet`) or `no_senses`.

    >>> round(meteor("the mills burned".split(), "the mill burned down".split(), no_senses).score, 4)
    0.755
    """
    found = align(candidate, reference, senses)
    return score_alignment(found, len(candidate), len(reference), parameters)


def score_alignment(
    found: Alignment, candidate_words: int, reference_words: int, parameters: Parameters = CLASSIC
) -> Meteor:
    """The score of an alignment of two texts of so many words; 0 where nothing is matched."""
    matches = len(found.pairs)
    if not matches:
        return Meteor(0.0, 0.0, 0.0, 0, 0)
    precision, recall = matches / candidate_words, matches / reference_words
    alpha, beta, gamma = parameters
    mean = precision * recall / (alpha * precision + (1.0 - alpha) * recall)
    penalty = gamma * (found.chunks / matches) ** beta
    return Meteor((1.0 - penalty) * mean, precision, recall, matches, found.chunks)


def meteor_of(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    senses: Senses,
    parameters: Parameters = CLASSIC,
) -> list[list[Meteor]]:
    """METEOR of each candidate with each of its references, all divided into words by `tokens`."""
    known: dict[str, list[str]] = {}

    def words(text: str) -> list[str]:
        if text not in known:
            known[text] = tokens(text)
        return known[text]

    return [
        [meteor(words(candidate), words(reference), senses, parameters) for reference in own]
        for candidate, own in zip(candidates, references, strict=True)
    ]


def tokens(text: str) -> list[str]:
    """Words and marks in lower case.

    >>> tokens("It's 3.5 miles, he said.")
    ["it's", '3.5', 'miles', ',', 'he', 'said', '.']
    """
    return _TOKEN.findall(text.lower())


def align(candidate: Sequence[str], reference: Sequence[str], senses: Senses) -> Alignment:
    """The alignment of two lists of words: most exact matches, then stems, then synonyms, then fewest chunks.

    >>> align("on the mat the cat sat".split(), "the cat sat on the mat".split(), no_senses)
    Alignment(pairs=((0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)), chunks=2)
    """
    links = make_links(candidate, reference, stem, senses)
    pairs = fewest_chunks(links, _STATES)
    if pairs is None:
        pairs = tiled(links)
    return Alignment(tuple(pairs), count_chunks(pairs))


def count_chunks(pairs: Sequence[Pair]) -> int:
    """How many runs, adjacent and in order in both texts, the pairs fall into.

    >>> count_chunks([(0, 3), (1, 4), (3, 5)])
    2
    """
    known = set(pairs)
    return sum((i - 1, j - 1) not in known for i, j in pairs)
