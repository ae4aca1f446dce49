"""METEOR as NLTK computes it, for comparison with figures that were made with it.

NLTK matches words from the end, each with the last that is left, so equal words seldom form chunks and long texts
score a third less than with the fewest chunks; and its synonyms are looked up by stem. Its own code is called here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.metrics.meteor import CLASSIC, Alignment, Meteor, Parameters, count_chunks, score_alignment

Synonyms = Callable[[str], Iterable[str]]


def nltk_meteor(
    candidate: Sequence[str], reference: Sequence[str], synonyms: Synonyms, parameters: Parameters = CLASSIC
) -> Meteor:
    """NLTK's METEOR of two lists of words; `synonyms` gives the words of all synsets a word is in.

    >>> nltk_meteor("on the mat the cat".split(), "the cat on the mat".split(), lambda word: ()).chunks
    5
    """
    pairs, _, _ = _align_words()(candidate, reference, wordnet=_Lookup(synonyms))
    found = Alignment(tuple(pairs), count_chunks(pairs))
    return score_alignment(found, len(candidate), len(reference), parameters)


class _Lemma(NamedTuple):
    """A word, as NLTK asks for it."""

    word: str

    def name(self) -> str:
        return self.word


class _Synset(NamedTuple):
    """Words of one meaning, as NLTK asks for them."""

    words: Iterable[str]

    def lemmas(self) -> list[_Lemma]:
        return [_Lemma(word) for word in self.words]


class _Lookup(NamedTuple):
    """What NLTK's METEOR needs of WordNet, without NLTK's copy of it."""

    synonyms: Synonyms

    def synsets(self, word: str) -> list[_Synset]:
        return [_Synset(self.synonyms(word))]


@cache
def _align_words() -> Any:
    try:
        from nltk.translate.meteor_score import align_words
    except ImportError as error:
        raise EnsueError(f"NLTK's METEOR needs NLTK: pip install 'ensue[summaries]' ({error}).") from None
    return align_words
