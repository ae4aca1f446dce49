"""Which of two texts is preferred: the released code's tie of 1e-4, on totals and on perplexities."""

from __future__ import annotations

import math

import pytest

from ensue.metrics.preference import prefer_per_token, prefer_total


@pytest.mark.parametrize(
    ("advantage", "verdict"),
    [(1.0, "good"), (1.1e-4, "good"), (0.9e-4, "same"), (0.0, "same"), (-0.9e-4, "same"), (-1.1e-4, "bad")],
)
def test_totals_are_the_same_within_a_ten_thousandth(advantage: float, verdict: str) -> None:
    assert prefer_total(advantage, 0.0) == verdict


def test_a_difference_of_just_the_tie_is_a_tie() -> None:
    assert prefer_total(1e-4, 0.0) == "same"


def test_means_are_compared_as_perplexities() -> None:
    # The same step in nats is 7e-4 of perplexity at a mean of -2 and 9e-5 at a mean of 0.
    step = 9e-5
    assert prefer_per_token(-2.0, -2.0 - step) == "good"
    assert prefer_per_token(-2.0 - step, -2.0) == "bad"
    assert prefer_per_token(0.0, -step) == "same"
    assert math.exp(2.0 + step) - math.exp(2.0) > 1e-4 > math.exp(step) - 1.0


def test_a_hopeless_mean_is_worse_and_no_overflow() -> None:
    assert prefer_per_token(-3.0, -5_000.0) == "good"
    assert prefer_per_token(-5_000.0, -6_000.0) == "same"
