"""BLEU-1 to BLEU-4 of a segment by sacrebleu.

Tokenisation is sacrebleu's `13a` (that of WMT's mteval script), case is kept. Where a candidate has n-grams of an
order and none of them is right, the `exp` smoothing of sacrebleu stands in for the zero: half of one match the
first time, a quarter the next. A segment shorter than n words is scored on the orders it has (effective order).
Values are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from ensue.lazy import from_extra

ORDERS = 4


class Bleu(NamedTuple):
    """BLEU with n-grams of up to one, two, three and four words."""

    bleu1: float
    bleu2: float
    bleu3: float
    bleu4: float


def bleu(candidate: str, references: Sequence[str]) -> Bleu:
    """Compute BLEU of one segment, on the orders it is long enough for.

    >>> [round(value, 3) for value in bleu("the mill by the river", ["the mill on the river"])]
    [0.8, 0.632, 0.405, 0.302]
    """
    if not references:
        raise ValueError("BLEU needs at least one reference for every segment.")
    counts = _metric().sentence_score(candidate, list(references))
    found = []
    for order in range(1, ORDERS + 1):
        score = _metric().compute_bleu(
            list(counts.counts[:order]),
            list(counts.totals[:order]),
            int(counts.sys_len),
            int(counts.ref_len),
            smooth_method="exp",
            effective_order=True,
            max_ngram_order=order,
        )
        # Logarithms and back leave a perfect score a hair off one.
        found.append(min(max(score.score / 100.0, 0.0), 1.0))
    return Bleu(*found)


@cache
def _metric() -> Any:
    bleu = from_extra("sacrebleu.metrics.bleu:BLEU", "BLEU", "sacrebleu", "summaries")
    return bleu(max_ngram_order=ORDERS, effective_order=True)
