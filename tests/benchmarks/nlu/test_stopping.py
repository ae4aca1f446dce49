"""The learning rate falls and training stops where appendix A.1.2.2 says, on invented scores."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.stopping import Stopping


def told(rule: Stopping, scores: list[float]) -> int:
    """How many scores the rule takes before it is over."""
    for number, score in enumerate(scores, 1):
        rule.improved(score)
        if rule.over:
            return number
    return len(scores)


def test_the_third_failure_in_all_drops_the_rate_below_the_lowest() -> None:
    rule = Stopping()
    assert told(rule, [0.5, 0.6, 0.6, 0.7, 0.1, 0.8, 0.2, 0.9]) == 7
    assert rule.rate == pytest.approx(8e-6)
    assert rule.best == 0.8


def test_the_rate_is_divided_by_five_at_each_failure() -> None:
    rule = Stopping()
    rates = []
    for score in (0.1, 0.1, 0.3, 0.2):
        rule.improved(score)
        rates.append(rule.rate)
    assert rates == pytest.approx([1e-3, 2e-4, 2e-4, 4e-5])
    assert not rule.over


def test_five_checks_in_a_row_without_improvement_stop_where_the_rate_still_would_not() -> None:
    rule = Stopping(rate=1.0)
    assert told(rule, [0.4, 0.3, 0.5, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]) == 8
    assert rule.rate > 1e-5


def test_no_number_is_no_improvement() -> None:
    rule = Stopping()
    assert not rule.improved(math.nan)
    assert rule.failures == 1


@given(st.lists(st.floats(0, 1), max_size=40))
def test_it_is_over_exactly_after_three_scores_that_beat_nothing(scores: list[float]) -> None:
    failures = sum(score <= max(scores[:place], default=-1.0) for place, score in enumerate(scores))
    rule = Stopping()
    for score in scores:
        rule.improved(score)
    assert rule.over == (failures >= 3)
