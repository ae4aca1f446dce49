"""One round on one story: who reviews whom, what comes out when all have done so, and what it costs (§5.3, A.4.1).

A writer reads the story and asks four questions; with the question for the plot there are five. Four writers answer
all five, and each then ranks the three others' responses to every question. Bonuses go by rank and by agreement.

Money is counted in exact fractions of a dollar, so that what tied writers share adds up; `in_cents` rounds it to
what can be paid without losing or finding a cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ensue.benchmarks.crowd.rankings import ReviewerRanking, Standing, aggregate, agreeing_pairs, agreement
from ensue.errors import EnsueError

WRITERS = 4
QUESTIONS = 5
PLOT_QUESTION = "What is the plot of the story?"

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
    rankings: Sequence[ReviewerRanking]


_DEFAULT = Rates()


def writer_bonuses(standings: Sequence[Standing], rates: Rates = _DEFAULT) -> dict[str, Money]:
    """Return each writer's bonus for one question; those who tie share equally what their places together bring.

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
    """Return each reviewer's bonus for one question: so much for every pair ranked as the aggregate ranks it."""
    return {
        ranking.reviewer: rates.agreeing_pair * agreeing_pairs(ranking, settled.standings)
        for ranking in settled.rankings
    }


def earnings(questions: Sequence[Settled], rates: Rates = _DEFAULT) -> dict[str, Money]:
    """Return all bonuses of a story by person, as writer and as reviewer together."""
    total: dict[str, Money] = {}
    for settled in questions:
        for bonuses in (writer_bonuses(settled.standings, rates), reviewer_bonuses(settled, rates)):
            for person, bonus in bonuses.items():
                total[person] = total.get(person, Money()) + bonus
    return total


def costs(stories: Sequence[Sequence[Settled]], rates: Rates = _DEFAULT) -> Costs:
    """Return what some stories cost: one writing and one reviewing task a person and story, and all bonuses.

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
    """Round amounts to whole cents whose sum is the rounded sum: the largest remainders get the cents left over.

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


class ReviewDue(NamedTuple):
    """A task of the second step: one person ranks these writers' responses to a question."""

    reviewer: str
    question: int
    writers: tuple[str, ...]


class RoundOutcome(NamedTuple):
    """A story when all is in: its questions' rankings, everybody's bonus, what it cost, how far reviewers agree."""

    questions: tuple[Settled, ...]
    bonuses: dict[str, Money]
    costs: Costs
    agreement: float


def reviews_due(writers: Sequence[str], questions: int = QUESTIONS) -> list[ReviewDue]:
    """Return every review a story needs: each writer, on each question, of all the others.

    >>> reviews_due(["a", "b", "c"], questions=1)[0]
    ReviewDue(reviewer='a', question=1, writers=('b', 'c'))
    """
    if len(writers) < 3 or len(set(writers)) != len(writers):
        named = ", ".join(writers) or "none"
        raise EnsueError(f"A story needs at least three different writers to review each other, not {named}.")
    return [
        ReviewDue(reviewer, question, tuple(writer for writer in writers if writer != reviewer))
        for question in range(1, questions + 1)
        for reviewer in writers
    ]


def reviews_missing(
    writers: Sequence[str], rankings: Mapping[int, Sequence[ReviewerRanking]], questions: int = QUESTIONS
) -> list[ReviewDue]:
    """Return the reviews that have not come in yet."""
    done = {(number, ranking.reviewer) for number, given in rankings.items() for ranking in given}
    return [
        review for review in reviews_due(writers, questions) if (review.question, review.reviewer) not in done
    ]


def settle(
    writers: Sequence[str],
    rankings: Mapping[int, Sequence[ReviewerRanking]],
    rates: Rates | None = None,
    questions: int = QUESTIONS,
) -> RoundOutcome:
    """Return the outcome of a story for which every review is in; with one missing, nobody's bonus is known yet."""
    if missing := reviews_missing(writers, rankings, questions):
        first = missing[0]
        raise EnsueError(
            f"{len(missing)} of {len(reviews_due(writers, questions))} reviews are missing, "
            f"such as that of question {first.question} by {first.reviewer!r}; wait for them."
        )
    if unknown := sorted(set(rankings) - set(range(1, questions + 1))):
        raise EnsueError(
            f"There are rankings of question {unknown[0]}, where there are {questions} questions."
        )
    settled = tuple(
        Settled(aggregate(writers, rankings[number]), tuple(rankings[number])) for number in sorted(rankings)
    )
    paid = rates or Rates()
    return RoundOutcome(
        questions=settled,
        bonuses=earnings(settled, paid),
        costs=costs([settled], paid),
        agreement=agreement([(one.rankings, one.standings) for one in settled]),
    )
