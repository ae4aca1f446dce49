"""Which values a metric can take, by its name: what an interval near an end has to know."""

from __future__ import annotations

import math
from collections.abc import Iterable

Bounds = tuple[float, float]

SHARE: Bounds = (0.0, 1.0)
CORRELATION: Bounds = (-1.0, 1.0)
POSITIVE: Bounds = (0.0, math.inf)
UNBOUNDED: Bounds = (-math.inf, math.inf)

# By a name's first word: `accuracy_per_token` and `rouge1_mean` are shares as `accuracy` and `rouge1` are.
_SHARES = (
    "accuracy",
    "ties",
    "em",
    "f1",
    "f1a",
    "gender",
    "meteor",
    "perfect",
    "positional",
    "lcs",
    "edit",
    "auc",
)
_ROUGE = ("rouge1", "rouge2", "rougeL", "rougeLsum")
_RATINGS = ("correctness", "coverage", "overall")
_CORRELATIONS = ("bertscore", "mcc", "r3", "pearson", "spearman", "kendall")
_BY_FIRST_WORD: dict[str, Bounds] = {
    **dict.fromkeys((*_SHARES, *_ROUGE, *_RATINGS), SHARE),
    **dict.fromkeys(_CORRELATIONS, CORRELATION),
    "rank": (1.0, math.inf),
    "words": POSITIVE,
    "distance": POSITIVE,
}


def range_of(metric: str) -> Bounds:
    """Return the smallest and largest value of a metric; without ends for one that is not known.

    >>> range_of("accuracy_per_token"), range_of("margin")
    ((0.0, 1.0), (-inf, inf))
    """
    return _BY_FIRST_WORD.get(metric.partition("_")[0], UNBOUNDED)


def range_holding(metric: str, *values: Iterable[float]) -> Bounds:
    """Return a metric's range, without ends where a value lies outside it: another package's metric of its name.

    >>> range_holding("accuracy", [0.5], [1.0]), range_holding("accuracy", [50.0])
    ((0.0, 1.0), (-inf, inf))
    """
    low, high = range_of(metric)
    return (low, high) if all(low <= one <= high for some in values for one in some) else UNBOUNDED
