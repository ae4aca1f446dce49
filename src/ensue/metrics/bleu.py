"""BLEU-1 to BLEU-4 by sacrebleu, from counts kept of every segment.

Tokenisation is sacrebleu's `13a` (that of WMT's mteval script), case is kept. Where a candidate has n-grams of an
order and none of them is right, the `exp` smoothing of sacrebleu stands in for the zero: half of one match the
first time, a quarter the next. A segment shorter than n words is scored on the orders it has (effective order);
a whole corpus is scored on all of them, as sacrebleu does. Values are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from ensue.errors import EnsueError

ORDERS = 4


class BleuCounts(NamedTuple):
    """What BLEU needs of one segment; the counts of a corpus are the sums of those of its segments."""

    correct: tuple[int, ...]
    given: tuple[int, ...]
    length: int
    reference_length: int


class Bleu(NamedTuple):
    """BLEU with n-grams of up to one, two, three and four words."""

    bleu1: float
    bleu2: float
    bleu3: float
    bleu4: float


def bleu_counts(candidate: str, references: Sequence[str]) -> BleuCounts:
    """The n-grams of a candidate that occur in any reference, and the length of the reference nearest in length.

    >>> bleu_counts("the mill by the river", ["the mill on the river", "a mill"]).correct
    (4, 2, 0, 0)
    """
    if not references:
        raise ValueError("BLEU needs at least one reference for every segment.")
    score = _metric().sentence_score(candidate, list(references))
    return BleuCounts(tuple(score.counts), tuple(score.totals), int(score.sys_len), int(score.ref_len))


def bleu(counts: BleuCounts) -> Bleu:
    """BLEU of one segment, on the orders it is long enough for.

    >>> [round(value, 3) for value in bleu(bleu_counts("the mill by the river", ["the mill on the river"]))]
    [0.8, 0.632, 0.405, 0.302]
    """
    return _scores(counts, effective_order=True)


def corpus_bleu(counts: Sequence[BleuCounts]) -> Bleu:
    """BLEU of a corpus: of the sums of its segments' counts, not the mean of their scores."""
    return _scores(summed(counts), effective_order=False)


def summed(counts: Sequence[BleuCounts]) -> BleuCounts:
    """The counts of several segments together."""
    if not counts:
        raise ValueError("BLEU of a corpus needs at least one segment.")
    correct, given, lengths, wanted = zip(*counts, strict=True)
    return BleuCounts(
        tuple(map(sum, zip(*correct, strict=True))),
        tuple(map(sum, zip(*given, strict=True))),
        sum(lengths),
        sum(wanted),
    )


def signature() -> str:
    """What sacrebleu asks to be printed beside every figure."""
    return str(_metric().get_signature())


def _scores(counts: BleuCounts, *, effective_order: bool) -> Bleu:
    found = []
    for order in range(1, ORDERS + 1):
        score = _metric().compute_bleu(
            list(counts.correct[:order]),
            list(counts.given[:order]),
            counts.length,
            counts.reference_length,
            smooth_method="exp",
            effective_order=effective_order,
            max_ngram_order=order,
        )
        # Logarithms and back leave a perfect score a hair off one.
        found.append(min(max(score.score / 100.0, 0.0), 1.0))
    return Bleu(*found)


@cache
def _metric() -> Any:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise EnsueError(f"BLEU needs sacrebleu: pip install 'ensue[summaries]' ({error}).") from None
    return BLEU(max_ngram_order=ORDERS, effective_order=True)
