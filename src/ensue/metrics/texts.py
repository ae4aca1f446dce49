"""A text as metrics of overlap see it: its words as small numbers, made once, with n-grams counted once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from ensue.errors import EnsueError

# How ROUGE takes a text apart: runs of ASCII letters and digits once it is in lower case. Letters with
# accents divide words, so that figures agree with those of others.
_ALPHANUMERIC = re.compile(r"[a-z0-9]+")
# Shorter words are not stemmed by ROUGE.
_SHORTEST_STEMMED = 4

Gram = tuple[int, ...]
Tokenise = Callable[[str], Iterable[str]]


class Text:
    """The words of a text as numbers of one vocabulary; n-grams are counted when first asked for."""

    __slots__ = ("_counts", "_sets", "words")

    def __init__(self, words: Iterable[int]) -> None:
        self.words = list(words)
        self._counts: dict[int, dict[Gram, int]] = {}
        self._sets: dict[int, frozenset[Gram]] = {}

    def __len__(self) -> int:
        return len(self.words)

    def grams(self, n: int) -> Iterator[Gram]:
        """Each run of n words, in order."""
        return zip(*(self.words[start:] for start in range(n)), strict=False)

    def counts(self, n: int) -> dict[Gram, int]:
        """How often each n-gram occurs."""
        if n not in self._counts:
            self._counts[n] = Counter(self.grams(n))
        return self._counts[n]

    def unique(self, n: int) -> frozenset[Gram]:
        """The n-grams without their counts."""
        if n not in self._sets:
            self._sets[n] = frozenset(self._counts[n] if n in self._counts else self.grams(n))
        return self._sets[n]


class Texts:
    """Gives each distinct string its Text, once; all share a vocabulary and so can be compared.

    >>> texts = Texts()
    >>> texts("The mill, the river.").words, texts("River!").words
    ([0, 1, 0, 2], [2])
    """

    def __init__(self, tokenise: Tokenise | None = None) -> None:
        self._tokenise = tokenise or words
        self._vocabulary: dict[str, int] = {}
        self._known: dict[str, Text] = {}

    def __call__(self, text: str) -> Text:
        found = self._known.get(text)
        if found is None:
            numbers = self._vocabulary
            found = Text([numbers.setdefault(word, len(numbers)) for word in self._tokenise(text)])
            self._known[text] = found
        return found

    def numbers_of(self, words: Iterable[str]) -> frozenset[int]:
        """The numbers of those words that any text so far has."""
        return frozenset(self._vocabulary[word] for word in words if word in self._vocabulary)


def words(text: str) -> list[str]:
    """The words of a text as ROUGE counts them.

    >>> words("It's the Mill-owner's 2nd café.")
    ['it', 's', 'the', 'mill', 'owner', 's', '2nd', 'caf']
    """
    return _ALPHANUMERIC.findall(text.lower())


def stemmed_words(text: str) -> list[str]:
    """The words of a text, those of more than three letters cut to their stem, as ROUGE does it.

    >>> stemmed_words("He was milling the grains")
    ['he', 'was', 'mill', 'the', 'grain']
    """
    return [stem(word) if len(word) >= _SHORTEST_STEMMED else word for word in words(text)]


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """A word's stem by Porter's algorithm as NLTK extends it, which is what ROUGE and METEOR figures rest on.

    >>> stem("milling")
    'mill'
    """
    return str(_stemmer().stem(word))


@cache
def _stemmer() -> Any:
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise EnsueError(f"Stems need NLTK: pip install 'ensue[summaries]' ({error}).") from None
    return PorterStemmer()
