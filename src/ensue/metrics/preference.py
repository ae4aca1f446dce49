"""Which of two texts a model prefers, with ties as the Shuffle Test's released code has them."""

from __future__ import annotations

import math
from typing import Literal

Verdict = Literal["good", "same", "bad"]

# Two scores no further apart than this are the same.
TIE = 1e-4
_LARGEST_EXPONENT = 700.0


def prefer_total(original: float, shuffled: float) -> Verdict:
    """Judge by total log-likelihood, in nats.

    >>> prefer_total(-10.0, -11.0), prefer_total(-10.0, -10.00005), prefer_total(-10.0, -9.0)
    ('good', 'same', 'bad')
    """
    return _verdict(original - shuffled)


def prefer_per_token(original: float, shuffled: float) -> Verdict:
    """Judge by perplexity, the exponential of the mean negative log-likelihood per token.

    >>> prefer_per_token(-2.0, -2.1), prefer_per_token(-2.0, -2.000001)
    ('good', 'same')
    """
    return _verdict(_perplexity(shuffled) - _perplexity(original))


def _perplexity(mean_logprob: float) -> float:
    return math.exp(min(-mean_logprob, _LARGEST_EXPONENT))


def _verdict(advantage: float) -> Verdict:
    if abs(advantage) <= TIE:
        return "same"
    return "good" if advantage > 0 else "bad"
