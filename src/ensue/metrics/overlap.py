"""What two texts share: ROUGE-1, ROUGE-2 and ROUGE-L, equal to the `rouge-score` package and many times as fast.

A text is its words as numbers of a vocabulary, made once, with n-grams counted once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from ensue.lazy import from_extra

# How ROUGE takes a text apart: runs of ASCII letters and digits once it is in lower case. Letters with
# accents divide words, so that figures agree with those of others.
_ALPHANUMERIC = re.compile(r"[a-z0-9]+")
# Shorter words are not stemmed by ROUGE.
_SHORTEST_STEMMED = 4

Gram = tuple[int, ...]
Tokenise = Callable[[str], Iterable[str]]


class Overlap(NamedTuple):
    """How much of the candidate is in the reference, of the reference in the candidate, and their mean."""

    precision: float
    recall: float
    f1: float


NOTHING = Overlap(0.0, 0.0, 0.0)


def overlap(shared: float, given: float, wanted: float) -> Overlap:
    """Return the overlap of a candidate of `given` units and a reference of `wanted`, of which `shared` are in both.

    >>> overlap(2, 4, 2)
    Overlap(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    precision = shared / given if given else 0.0
    recall = shared / wanted if wanted else 0.0
    return Overlap(precision, recall, harmonic(precision, recall))


def harmonic(precision: float, recall: float) -> float:
    """Return F1 of precision and recall; 0 where both are.

    >>> harmonic(0.5, 1.0)
    0.6666666666666666
    """
    total = precision + recall
    return 2.0 * precision * recall / total if total else 0.0


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
        """Yield each run of n words, in order."""
        return zip(*(self.words[start:] for start in range(n)), strict=False)

    def counts(self, n: int) -> dict[Gram, int]:
        """Count each n-gram."""
        if n not in self._counts:
            self._counts[n] = Counter(self.grams(n))
        return self._counts[n]

    def unique(self, n: int) -> frozenset[Gram]:
        """Return the n-grams without their counts."""
        if n not in self._sets:
            self._sets[n] = frozenset(self._counts[n] if n in self._counts else self.grams(n))
        return self._sets[n]


class Texts:
    """Make each distinct string its Text, once; all share a vocabulary and so can be compared.

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


def words(text: str) -> list[str]:
    """Return the words of a text as ROUGE counts them.

    >>> words("It's the Mill-owner's 2nd café.")
    ['it', 's', 'the', 'mill', 'owner', 's', '2nd', 'caf']
    """
    return _ALPHANUMERIC.findall(text.lower())


def stemmed_words(text: str) -> list[str]:
    """Return the words of a text, those of more than three letters cut to their stem, as ROUGE does it.

    >>> stemmed_words("He was milling the grains")
    ['he', 'was', 'mill', 'the', 'grain']
    """
    return [stem(word) if len(word) >= _SHORTEST_STEMMED else word for word in words(text)]


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return a word's stem by Porter's algorithm as NLTK extends it, which is what ROUGE and METEOR figures rest on.

    >>> stem("milling")
    'mill'
    """
    return str(_stemmer().stem(word))


@cache
def _stemmer() -> Any:
    return from_extra("nltk.stem.porter:PorterStemmer", "Stemming", "NLTK", "summaries")()


class Rouge(NamedTuple):
    """ROUGE of one candidate and one reference."""

    rouge1: Overlap
    rouge2: Overlap
    rougeL: Overlap


def rouge(candidate: Text, reference: Text) -> Rouge:
    """Compute ROUGE of two texts of one vocabulary.

    >>> texts = Texts()
    >>> rouge(texts("the mill by the river"), texts("the river mill")).rougeL
    Overlap(precision=0.4, recall=0.6666666666666666, f1=0.5)
    """
    return Rouge(
        rouge_n(candidate, reference, 1), rouge_n(candidate, reference, 2), rouge_l(candidate, reference)
    )


def rouge_n(candidate: Text, reference: Text, n: int) -> Overlap:
    """Compare the n-grams of two texts, counted with repetition."""
    given, wanted = candidate.counts(n), reference.counts(n)
    shared = shared_count(given, wanted)
    return overlap(shared, max(len(candidate) - n + 1, 0), max(len(reference) - n + 1, 0))


def rouge_l(candidate: Text, reference: Text) -> Overlap:
    """Compare the length of the longest common subsequence with that of either text."""
    shared = _subsequence()(candidate.words, reference.words)
    return overlap(shared, len(candidate), len(reference))


def rouge_of(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, stemming: bool = True
) -> list[list[Rouge]]:
    """Compute ROUGE of each candidate with each of its references; every distinct text is tokenised and stemmed once.

    >>> [[one.rouge1.f1 for one in row] for row in rouge_of(["mills"], [["mill", "river"]])]
    [[1.0, 0.0]]
    """
    texts = Texts(stemmed_words if stemming else words)
    return [
        [rouge(texts(candidate), texts(reference)) for reference in own]
        for candidate, own in zip(candidates, references, strict=True)
    ]


def shared_count(first: dict[Gram, int], second: dict[Gram, int]) -> int:
    """Count the n-grams that two texts have in common, with repetition."""
    both = first.keys() & second.keys()
    return sum([min(first[gram], second[gram]) for gram in both])


@cache
def _subsequence() -> Callable[[list[int], list[int]], int]:
    """Return the compiled function for the length of the longest common subsequence."""
    found = from_extra("rapidfuzz.distance:LCSseq", "ROUGE-L", "rapidfuzz", "summaries")
    return found.similarity  # type: ignore[no-any-return]
