"""ROUGE-1, ROUGE-2, ROUGE-L and ROUGE-Lsum, equal to the `rouge-score` package and many times as fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.metrics.overlap import NOTHING, Overlap, overlap
from ensue.metrics.texts import Gram, Text, Texts, stemmed_words, words


class Rouge(NamedTuple):
    """ROUGE of one candidate and one reference."""

    rouge1: Overlap
    rouge2: Overlap
    rougeL: Overlap


def rouge(candidate: Text, reference: Text) -> Rouge:
    """ROUGE of two texts of one vocabulary.

    >>> texts = Texts()
    >>> rouge(texts("the mill by the river"), texts("the river mill")).rougeL
    Overlap(precision=0.4, recall=0.6666666666666666, f1=0.5)
    """
    return Rouge(
        rouge_n(candidate, reference, 1), rouge_n(candidate, reference, 2), rouge_l(candidate, reference)
    )


def rouge_n(candidate: Text, reference: Text, n: int) -> Overlap:
    """What two texts share of their n-grams, counted with repetition."""
    given, wanted = candidate.counts(n), reference.counts(n)
    shared = shared_count(given, wanted)
    return overlap(shared, max(len(candidate) - n + 1, 0), max(len(reference) - n + 1, 0))


def rouge_l(candidate: Text, reference: Text) -> Overlap:
    """How long the longest common subsequence is, against the length of either text."""
    shared = _subsequence()(candidate.words, reference.words)
    return overlap(shared, len(candidate), len(reference))


def rouge_lsum(candidate: Sequence[Text], reference: Sequence[Text]) -> Overlap:
    """ROUGE-L of sentences: each reference sentence against all of the candidate's, no word counted twice.

    `rouge-score` takes lines for sentences; here the caller divides the texts.
    """
    given, wanted = sum(map(len, candidate)), sum(map(len, reference))
    if not given or not wanted:
        return NOTHING
    left = Counter(word for text in candidate for word in text.words)
    left &= Counter(word for text in reference for word in text.words)
    shared = 0
    for text in reference:
        places = sorted(set().union(*(_common_places(text.words, other.words) for other in candidate)))
        for place in places:
            word = text.words[place]
            if left[word] > 0:
                left[word] -= 1
                shared += 1
    return overlap(shared, given, wanted)


def rouge_of(
    candidates: Sequence[str], references: Sequence[Sequence[str]], *, stemming: bool = True
) -> list[list[Rouge]]:
    """ROUGE of each candidate with each of its references; every distinct text is tokenised and stemmed once.

    >>> [[one.rouge1.f1 for one in row] for row in rouge_of(["mills"], [["mill", "river"]])]
    [[1.0, 0.0]]
    """
    texts = Texts(stemmed_words if stemming else words)
    return [
        [rouge(texts(candidate), texts(reference)) for reference in own]
        for candidate, own in zip(candidates, references, strict=True)
    ]


def shared_count(first: dict[Gram, int], second: dict[Gram, int]) -> int:
    """How many n-grams two counts have in common, with repetition."""
    both = first.keys() & second.keys()
    return sum([min(first[gram], second[gram]) for gram in both])


@cache
def _subsequence() -> Callable[[list[int], list[int]], int]:
    """The compiled length of the longest common subsequence."""
    try:
        from rapidfuzz.distance import LCSseq
    except ImportError as error:
        raise EnsueError(f"ROUGE-L needs rapidfuzz: pip install 'ensue[summaries]' ({error}).") from None
    similarity: Any = LCSseq.similarity
    return similarity  # type: ignore[no-any-return]


def _common_places(reference: list[int], candidate: list[int]) -> list[int]:
    """The places in the reference of one longest common subsequence, the one `rouge-score` walks back to."""
    table = [[0] * (len(candidate) + 1)]
    for word in reference:
        above, row = table[-1], [0]
        for j, other in enumerate(candidate):
            row.append(above[j] + 1 if word == other else max(above[j + 1], row[j]))
        table.append(row)
    places, i, j = [], len(reference), len(candidate)
    while i and j:
        if reference[i - 1] == candidate[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif table[i][j - 1] > table[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return places
