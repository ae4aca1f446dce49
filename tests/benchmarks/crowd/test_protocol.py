"""A story's round from reviews due to everybody's bonus: the paper's amounts, and never a cent lost."""

from __future__ import annotations

from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.crowd.protocol import (
    QUESTIONS,
    Costs,
    Rates,
    Settled,
    costs,
    earnings,
    in_cents,
    reviewer_bonuses,
    reviews_due,
    reviews_missing,
    settle,
    writer_bonuses,
)
from ensue.benchmarks.crowd.rankings import ReviewerRanking, Standing, aggregate
from ensue.errors import EnsueError
from tests.benchmarks.crowd.test_rankings import WRITERS, rounds


@given(some.lists(rounds(), min_size=QUESTIONS, max_size=QUESTIONS))
def test_a_story_is_settled_when_all_reviews_are_in(questions: list[list[ReviewerRanking]]) -> None:
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
    tied = [ReviewerRanking(who, dict.fromkeys(set(WRITERS) - {who}, 1)) for who in WRITERS]
    stranger = ReviewerRanking("eve", {"ana": 1, "ben": 2, "cas": 3, "dot": 4})
    with pytest.raises(EnsueError, match="Reviewer 'eve' is none of the story's writers"):
        settle(WRITERS, {1: [*tied, stranger]}, questions=1)
    assert settle(WRITERS, {1: tied}, questions=1).costs.summaries == 4


def test_what_is_missing_is_named() -> None:
    one = {1: [ReviewerRanking("ana", {"ben": 1, "cas": 2, "dot": 3})]}
    assert len(reviews_missing(WRITERS, one)) == 19
    with pytest.raises(EnsueError, match="19 of 20 reviews are missing, such as that of question 1 by 'ben'"):
        settle(WRITERS, one)
    with pytest.raises(EnsueError, match="at least three different writers"):
        reviews_due(["ana", "ana", "ben"])
    full = {
        number: [ReviewerRanking(who, dict.fromkeys(set(WRITERS) - {who}, 1)) for who in WRITERS]
        for number in (1, 2)
    }
    with pytest.raises(EnsueError, match="rankings of question 2, where there are 1 questions"):
        settle(WRITERS, full, questions=1)
    tied = settle(WRITERS, full, questions=2)
    assert (tied.agreement, set(tied.bonuses.values())) == (0.0, {2 * Rates().places[1]})


def _standings(places: list[int]) -> list[Standing]:
    return [Standing(w, p, places.count(p), Fraction(p)) for w, p in zip(WRITERS, places, strict=True)]


@pytest.mark.parametrize(
    ("places", "paid"),
    [
        ([1, 2, 3, 4], [2.50, 1.25, 0.75, 0.50]),
        ([1, 1, 3, 4], [1.875, 1.875, 0.75, 0.50]),
        ([1, 2, 2, 4], [2.50, 1.00, 1.00, 0.50]),
        ([1, 2, 3, 3], [2.50, 1.25, 0.625, 0.625]),
        ([1, 1, 3, 3], [1.875, 1.875, 0.625, 0.625]),
        ([1, 1, 1, 1], [1.25, 1.25, 1.25, 1.25]),
    ],
)
def test_tied_places_share_what_they_bring(places: list[int], paid: list[float]) -> None:
    assert [float(bonus) for bonus in writer_bonuses(_standings(places)).values()] == paid


@given(rounds())
def test_a_question_always_pays_writers_five_dollars(rankings: list[ReviewerRanking]) -> None:
    bonuses = writer_bonuses(aggregate(WRITERS, rankings))
    assert sum(bonuses.values()) == 5
    assert fmean(map(float, bonuses.values())) == 1.25
    means = {one.writer: one.mean_rank for one in aggregate(WRITERS, rankings)}
    assert all(
        (means[a] < means[b]) == (bonuses[a] > bonuses[b])
        and (means[a] == means[b]) == (bonuses[a] == bonuses[b])
        for a in WRITERS
        for b in WRITERS
    )


@given(rounds())
def test_reviewers_get_fifty_cents_a_pair_and_at_most_one_and_a_half(rankings: list[ReviewerRanking]) -> None:
    bonuses = reviewer_bonuses(Settled(aggregate(WRITERS, rankings), rankings))
    assert set(bonuses) == set(WRITERS)
    assert all(bonus in (0, Fraction(1, 2), 1, Fraction(3, 2)) for bonus in bonuses.values())


@given(some.lists(rounds(), min_size=1, max_size=4))
def test_costs_are_all_that_people_are_paid(questions: list[list[ReviewerRanking]]) -> None:
    settled = [Settled(aggregate(WRITERS, rankings), rankings) for rankings in questions]
    found = costs([settled, settled])
    assert found.writing == 2 * 4 * 13
    assert found.reviewing == 2 * 4 * 8
    assert found.writer_bonuses + found.reviewer_bonuses == 2 * sum(earnings(settled).values())
    assert found.writer_bonuses == 10 * len(questions)
    assert found.summaries == 8 * len(questions)
    assert found.per_summary == found.total / found.summaries


def test_the_papers_averages_make_a_summary_six_dollars_and_a_half() -> None:
    story = Costs(Fraction(4 * 13), Fraction(4 * 8), 4 * Fraction("6.25"), 4 * Fraction("5.57"), 20)
    assert float(story.per_summary) == pytest.approx(6.564)
    with pytest.raises(EnsueError, match="no summary"):
        story._replace(summaries=0).per_summary  # noqa: B018


def test_more_responses_than_places_are_refused_unless_rates_are_given() -> None:
    standings = [*_standings([1, 2, 3, 4]), Standing("eve", 5, 1, Fraction(5))]
    with pytest.raises(EnsueError, match="5 responses but bonuses for 4 places"):
        writer_bonuses(standings)
    assert writer_bonuses(standings, Rates(places=(Fraction(1),) * 5))["eve"] == 1


@given(some.dictionaries(some.text(max_size=3), some.fractions(0, 30), max_size=8))
def test_cents_add_up_and_nobody_is_a_cent_off(amounts: dict[str, Fraction]) -> None:
    paid = in_cents(amounts)
    assert sum(paid.values()) == round(sum(amounts.values(), Fraction()) * 100)
    assert all(abs(paid[name] - amounts[name] * 100) < 1 for name in amounts)


def test_nobody_pays_to_work() -> None:
    with pytest.raises(EnsueError, match="never below zero"):
        in_cents({"ana": Fraction(-1)})
