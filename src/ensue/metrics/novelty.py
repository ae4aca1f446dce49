"""How much of a summary's wording is its source's or another summary's own: n-gram overlap, novelty, compression.

Tables 5.2 and 5.3 of the dissertation are means of these; the share of a summary that occurs in its source is also
the plainest measure of consistency there is, and the one every other has to beat.
"""

from __future__ import annotations

from typing import NamedTuple

from ensue.metrics.overlap import Overlap, overlap
from ensue.metrics.rouge import rouge_l, shared_count
from ensue.metrics.texts import Text

_ORDERS = (1, 2, 3, 4)

# Words that say little of what a text is about; a summary shares them with any source.
_FUNCTION_WORDS = """
    a about above after again against all also am an and any are as at be because been before being below between
    both but by can could did do does doing down during each few for from further had has have having he her here
    hers herself him himself his how i if in into is it its itself just me more most must my myself no nor not now of
    off on once only or other our ours ourselves out over own s same she should so some such t than that the their
    theirs them themselves then there these they this those through to too under until up upon us very was we were
    what when where which while who whom whose why will with would you your yours yourself yourselves
    """
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())


class NGrams(NamedTuple):
    """One number for each length of n-grams."""

    n1: float
    n2: float
    n3: float
    n4: float


def shared_ngrams(first: Text, second: Text) -> NGrams:
    """Of two texts' distinct n-grams, the share that is in both: twice what is shared over what either has.

    This is what comes nearest the figures of table 5.3's upper part, which does not say over what it is taken.

    >>> from ensue.metrics.texts import Texts
    >>> texts = Texts()
    >>> shared_ngrams(texts("the old mill"), texts("an old mill burned"))
    NGrams(n1=0.5714285714285715, n2=0.4, n3=0.0, n4=0.0)
    """
    return NGrams(*(distinct_overlap(first, second, n).f1 for n in _ORDERS))


def copied_ngrams(summary: Text, source: Text) -> NGrams:
    """The share of a summary's distinct n-grams that occur in the source (table 5.3, lower part)."""
    return NGrams(*(distinct_overlap(summary, source, n).precision for n in _ORDERS))


def novel_ngrams(summary: Text, source: Text) -> NGrams:
    """The share of a summary's distinct n-grams that the source does not have; 0 where it has none that long."""
    return NGrams(
        *(1.0 - distinct_overlap(summary, source, n).precision if summary.unique(n) else 0.0 for n in _ORDERS)
    )


def distinct_overlap(first: Text, second: Text, n: int) -> Overlap:
    """What two texts share of their distinct n-grams: as part of the first, of the second, and of both."""
    one, other = first.unique(n), second.unique(n)
    return overlap(len(one & other), len(one), len(other))


def jaccard(first: Text, second: Text, n: int) -> float:
    """The distinct n-grams in both texts as a part of those in either; 0 where there are none."""
    one, other = first.unique(n), second.unique(n)
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def compression(summary_words: int, source_words: int) -> float:
    """By how much a summary is shorter than its source (0.954 for SQuALITY); below 0 where it is longer.

    >>> compression(237, 5200)
    0.9544230769230769
    """
    if source_words <= 0:
        raise ValueError("A source without words cannot be compressed.")
    return 1.0 - summary_words / source_words


class SourceOverlap(NamedTuple):
    """How much of a summary occurs in its source; 0 for a summary that has nothing of the kind."""

    words: float
    content: float
    bigrams: float
    trigrams: float
    subsequence: float


def source_overlap(summary: Text, source: Text, ignored: frozenset[int] = frozenset()) -> SourceOverlap:
    """Overlap precision: the share of the summary's words, content words and n-grams that the source has.

    Every occurrence in the summary counts, however often the source has it, except in `subsequence`, the share of
    the summary's words that can be read off the source in order. `ignored` are the numbers of words that are not
    content words: `texts.numbers_of(FUNCTION_WORDS)`. Bigrams correlate at 0.67 with human judgments of the 235
    CNN/DM summaries of QAGS, and are what its tables have as the baseline.
    """
    kept = [word for word in summary.words if word not in ignored]
    have = {word for (word,) in source.unique(1)}
    return SourceOverlap(
        words=_occurring(summary, source, 1),
        content=sum(word in have for word in kept) / len(kept) if kept else 0.0,
        bigrams=_occurring(summary, source, 2),
        trigrams=_occurring(summary, source, 3),
        subsequence=rouge_l(summary, source).precision,
    )


def clipped_precision(summary: Text, source: Text, n: int) -> float:
    """As `source_overlap`, but an n-gram counts no more often than the source has it: ROUGE-n's precision."""
    given = max(len(summary) - n + 1, 0)
    return shared_count(summary.counts(n), source.counts(n)) / given if given else 0.0


def _occurring(summary: Text, source: Text, n: int) -> float:
    have, given = source.unique(n), max(len(summary) - n + 1, 0)
    return sum(count for gram, count in summary.counts(n).items() if gram in have) / given if given else 0.0
