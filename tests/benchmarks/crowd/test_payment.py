"""Bonuses and costs: the paper's amounts, shared where writers tie, and never a cent lost."""

from __future__ import annotations

from fractions import Fraction
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.crowd.payment import (
    Costs,
    Rates,
    Settled,
    costs,
    earnings,
    in_cents,
    reviewer_bonuses,
    writer_bonuses,
)
from ensue.benchmarks.crowd.rankings import Ranking, Standing, aggregate
from ensue.errors import EnsueError
from tests.benchmarks.crowd.test_rankings import WRITERS, rounds

DOLLARS = [2.50, 1.25, 0.75, 0.50]


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
def test_a_question_always_pays_writers_five_dollars(rankings: list[Ranking]) -> None:
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
def test_reviewers_get_fifty_cents_a_pair_and_at_most_one_and_a_half(rankings: list[Ranking]) -> None:
    bonuses = reviewer_bonuses(Settled(aggregate(WRITERS, rankings), rankings))
    assert set(bonuses) == set(WRITERS)
    assert all(bonus in (0, Fraction(1, 2), 1, Fraction(3, 2)) for bonus in bonuses.values())


@given(some.lists(rounds(), min_size=1, max_size=4))
def test_costs_are_all_that_people_are_paid(questions: list[list[Ranking]]) -> None:
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
