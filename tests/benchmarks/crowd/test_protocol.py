"""A story's round from reviews due to everybody's bonus."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.crowd.payment import Rates
from ensue.benchmarks.crowd.protocol import QUESTIONS, reviews_due, reviews_missing, settle
from ensue.benchmarks.crowd.rankings import Ranking
from ensue.errors import EnsueError
from tests.benchmarks.crowd.test_rankings import WRITERS, rounds


@given(some.lists(rounds(), min_size=QUESTIONS, max_size=QUESTIONS))
def test_a_story_is_settled_when_all_reviews_are_in(questions: list[list[Ranking]]) -> None:
    rankings = dict(enumerate(questions, 1))
    assert reviews_missing(WRITERS, rankings) == []
    outcome = settle(WRITERS, rankings)
    assert len(outcome.questions) == QUESTIONS
    assert set(outcome.bonuses) == set(WRITERS)
    assert sum(outcome.bonuses.values()) == outcome.costs.writer_bonuses + outcome.costs.reviewer_bonuses
    assert outcome.costs.writer_bonuses == 25
    # Each of sixty pairs that agree brings fifty cents.
    assert float(outcome.costs.reviewer_bonuses) == pytest.approx(30 * outcome.agreement)
    assert outcome.costs.summaries == 20
    unpaid = settle(WRITERS, rankings, Rates(writing=Rates().writing * 0))
    assert unpaid.costs.total == outcome.costs.total - 52


def test_everybody_reviews_everybody_else_on_every_question() -> None:
    due = reviews_due(WRITERS)
    assert len(due) == 20
    assert all(review.reviewer not in review.writers and len(review.writers) == 3 for review in due)
    # Every response has three reviews.
    seen = [(review.question, writer) for review in due for writer in review.writers]
    assert {seen.count(one) for one in seen} == {3}


def test_a_reviewer_who_is_no_writer_is_refused() -> None:
    """A fifth ranking would move the aggregate and be paid for."""
    tied = [Ranking(who, dict.fromkeys(set(WRITERS) - {who}, 1)) for who in WRITERS]
    stranger = Ranking("eve", {"ana": 1, "ben": 2, "cas": 3, "dot": 4})
    with pytest.raises(EnsueError, match="Reviewer 'eve' is none of the story's writers"):
        settle(WRITERS, {1: [*tied, stranger]}, questions=1)
    assert settle(WRITERS, {1: tied}, questions=1).costs.summaries == 4


def test_what_is_missing_is_named() -> None:
    one = {1: [Ranking("ana", {"ben": 1, "cas": 2, "dot": 3})]}
    assert len(reviews_missing(WRITERS, one)) == 19
    with pytest.raises(EnsueError, match="19 of 20 reviews are missing, such as that of question 1 by 'ben'"):
        settle(WRITERS, one)
    with pytest.raises(EnsueError, match="at least three different writers"):
        reviews_due(["ana", "ana", "ben"])
    full = {
        number: [Ranking(who, dict.fromkeys(set(WRITERS) - {who}, 1)) for who in WRITERS] for number in (1, 2)
    }
    with pytest.raises(EnsueError, match="rankings of question 2, where there are 1 questions"):
        settle(WRITERS, full, questions=1)
    tied = settle(WRITERS, full, questions=2)
    assert (tied.agreement, set(tied.bonuses.values())) == (0.0, {2 * Rates().places[1]})
