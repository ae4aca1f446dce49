"""What writers and reviewers are paid: bonuses by rank and by agreement, and what a summary costs (§5.3, A.4.1).

Money is counted in exact fractions of a dollar, so that what tied writers share adds up; `in_cents` rounds it to
what can be paid without losing or finding a cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ensue.benchmarks.crowd.rankings import Ranking, Standing, agreeing_pairs
from ensue.errors import EnsueError

Money = Fraction


class Rates(NamedTuple):
    """Dollars for the tasks and bonuses; the defaults are the paper's, for its Upwork writers."""

    writing: Money = Money(13)
    reviewing: Money = Money(8)
    places: tuple[Money, ...] = (Money(250, 100), Money(125, 100), Money(75, 100), Money(50, 100))
    agreeing_pair: Money = Money(50, 100)


class Costs(NamedTuple):
    """What was spent, by purpose, and on how many summaries."""

    writing: Money
    reviewing: Money
    writer_bonuses: Money
    reviewer_bonuses: Money
    summaries: int

    @property
    def total(self) -> Money:
        return self.writing + self.reviewing + self.writer_bonuses + self.reviewer_bonuses

    @property
    def per_summary(self) -> Money:
        if not self.summaries:
            raise EnsueError("There is no summary to divide the costs by.")
        return self.total / self.summaries


class Settled(NamedTuple):
    """One question when all reviews are in: the aggregate ranking and the reviewers' own."""

    standings: Sequence[Standing]
    rankings: Sequence[Ranking]


_DEFAULT = Rates()


def writer_bonuses(standings: Sequence[Standing], rates: Rates = _DEFAULT) -> dict[str, Money]:
    """Each writer's bonus for one question; those who tie share equally what their places together bring.

    >>> tied = [Standing("a", 1, 2, Fraction(1)), Standing("b", 1, 2, Fraction(1)), Standing("c", 3, 1, Fraction(3))]
    >>> {writer: float(bonus) for writer, bonus in writer_bonuses(tied).items()}
    {'a': 1.875, 'b': 1.875, 'c': 0.75}
    """
    if len(standings) > len(rates.places):
        raise EnsueError(
            f"There are {len(standings)} responses but bonuses for {len(rates.places)} places; state more rates."
        )
    return {
        one.writer: sum(rates.places[one.place - 1 : one.place - 1 + one.sharing], Money()) / one.sharing
        for one in standings
    }


def reviewer_bonuses(settled: Settled, rates: Rates = _DEFAULT) -> dict[str, Money]:
    """Each reviewer's bonus for one question: so much for every pair ranked as the aggregate ranks it."""
    return {
        ranking.reviewer: rates.agreeing_pair * agreeing_pairs(ranking, settled.standings)
        for ranking in settled.rankings
    }


def earnings(questions: Sequence[Settled], rates: Rates = _DEFAULT) -> dict[str, Money]:
    """All bonuses of a story by person, as writer and as reviewer together."""
    total: dict[str, Money] = {}
    for settled in questions:
        for bonuses in (writer_bonuses(settled.standings, rates), reviewer_bonuses(settled, rates)):
            for person, bonus in bonuses.items():
                total[person] = total.get(person, Money()) + bonus
    return total


def costs(stories: Sequence[Sequence[Settled]], rates: Rates = _DEFAULT) -> Costs:
    """What some stories cost: one writing and one reviewing task a person and story, and all bonuses.

    With the paper's average bonuses (6.25 and 5.57 dollars a person and story) a summary is 6.56 dollars.
    """
    writing = reviewing = for_writers = for_reviewers = Money()
    summaries = 0
    for questions in stories:
        writers = {one.writer for settled in questions for one in settled.standings}
        reviewers = {ranking.reviewer for settled in questions for ranking in settled.rankings}
        writing += rates.writing * len(writers)
        reviewing += rates.reviewing * len(reviewers)
        for settled in questions:
            summaries += len(settled.standings)
            for_writers += sum(writer_bonuses(settled.standings, rates).values(), Money())
            for_reviewers += sum(reviewer_bonuses(settled, rates).values(), Money())
    return Costs(writing, reviewing, for_writers, for_reviewers, summaries)


def in_cents(amounts: Mapping[str, Money]) -> dict[str, int]:
    """Amounts in whole cents whose sum is the rounded sum: the largest remainders get the cents left over.

    >>> in_cents({"a": Fraction(5, 6), "b": Fraction(5, 6), "c": Fraction(5, 6)})
    {'a': 84, 'b': 83, 'c': 83}
    """
    if any(amount < 0 for amount in amounts.values()):
        raise EnsueError("Amounts to pay are never below zero.")
    whole = {person: int(amount * 100) for person, amount in amounts.items()}
    left = round(sum(amounts.values(), Money()) * 100) - sum(whole.values())
    by_remainder = sorted(amounts, key=lambda person: whole[person] - amounts[person] * 100)
    for person in by_remainder[:left]:
        whole[person] += 1
    return whole
