"""METEOR by NLTK: its word tokeniser, its alignment, its score. This module only saves it looking words up again.

NLTK matches each word with the last equal one that is left, so equal words seldom form chunks: its figures are lower
than those of Banerjee and Lavie's program, and they are what papers print (Wang (2022) has 30.6 for people on
SQuALITY's test set; here .3063). `nltk.word_tokenize` first divides a text into sentences with trained data that has
to be downloaded; the sentences come from `ensue.text.sentences` instead. Of 192,150 tokens of SQuALITY's references
64 differ by it, and the figure by .0002. Without sentences NLTK leaves full stops on words: .2873.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from ensue.lazy import from_extra
from ensue.metrics.overlap import stem
from ensue.text.sentences import split_sentences

# The words of all synsets that a word is in.
Synonyms = Callable[[str], Iterable[str]]


def meteor_of(
    candidates: Sequence[str], references: Sequence[Sequence[str]], synonyms: Synonyms
) -> list[list[float]]:
    """Compute METEOR of each candidate with each of its references; `synonyms` is that of a WordNet.

    >>> meteor_of(["The mill burned."], [["The mill burned.", "A boat sank."]], lambda word: ())
    [[0.9921875, 0.125]]
    """
    score, words, stemmer = _nltk()[0], cache(tokens), SimpleNamespace(stem=stem)
    # What NLTK's METEOR asks of WordNet, each word looked up once.
    lookup = SimpleNamespace(synsets=cache(lambda word: [_Synset([_Lemma(one) for one in synonyms(word)])]))
    return [
        [
            float(score(words(reference), words(candidate), stemmer=stemmer, wordnet=lookup))
            for reference in own
        ]
        for candidate, own in zip(candidates, references, strict=True)
    ]


def tokens(text: str) -> list[str]:
    """Split a text into words and marks as NLTK does, sentence by sentence.

    >>> tokens("It's 3.5 miles, he said. Don't.")
    ['It', "'s", '3.5', 'miles', ',', 'he', 'said', '.', 'Do', "n't", '.']
    """
    divide = _nltk()[1].tokenize
    return [word for sentence in split_sentences(text) for word in divide(sentence)]


class _Lemma(NamedTuple):
    """A word, as NLTK asks for it."""

    word: str

    def name(self) -> str:
        return self.word


class _Synset(NamedTuple):
    """Words of one meaning, as NLTK asks for them."""

    words: Sequence[_Lemma]

    def lemmas(self) -> Sequence[_Lemma]:
        return self.words


@cache
def _nltk() -> tuple[Any, Any]:
    """Return NLTK's METEOR of one pair of texts and its tokeniser."""
    names = ("nltk.translate.meteor_score:single_meteor_score", "nltk.tokenize:NLTKWordTokenizer")
    score, tokeniser = (from_extra(name, "METEOR", "NLTK", "summaries") for name in names)
    return score, tokeniser()
