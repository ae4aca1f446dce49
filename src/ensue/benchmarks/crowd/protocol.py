"""One round on one story: who writes, who reviews whom, and what comes out when all have done so (§5.3).

A writer reads the story and asks four questions; with the question for the plot there are five. Four writers answer
all five, and each then ranks the three others' responses to every question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ensue.benchmarks.crowd.payment import Costs, Money, Rates, Settled, costs, earnings
from ensue.benchmarks.crowd.rankings import Ranking, aggregate, agreement
from ensue.errors import EnsueError

WRITERS = 4
QUESTIONS = 5
PLOT_QUESTION = "What is the plot of the story?"


class Review(NamedTuple):
    """A task of the second step: one person ranks these writers' responses to a question."""

    reviewer: str
    question: int
    writers: tuple[str, ...]


class Outcome(NamedTuple):
    """A story when all is in: its questions' rankings, everybody's bonus, what it cost, how far reviewers agree."""

    questions: tuple[Settled, ...]
    bonuses: dict[str, Money]
    costs: Costs
    agreement: float


def reviews_due(writers: Sequence[str], questions: int = QUESTIONS) -> list[Review]:
    """Every review a story needs: each writer, on each question, of all the others.

    >>> reviews_due(["a", "b", "c"], questions=1)[0]
    Review(reviewer='a', question=1, writers=('b', 'c'))
    """
    if len(writers) < 3 or len(set(writers)) != len(writers):
        named = ", ".join(writers) or "none"
        raise EnsueError(f"A story needs at least three different writers to review each other, not {named}.")
    return [
        Review(reviewer, question, tuple(writer for writer in writers if writer != reviewer))
        for question in range(1, questions + 1)
        for reviewer in writers
    ]


def reviews_missing(
    writers: Sequence[str], rankings: Mapping[int, Sequence[Ranking]], questions: int = QUESTIONS
) -> list[Review]:
    """The reviews that have not come in yet."""
    done = {(number, ranking.reviewer) for number, given in rankings.items() for ranking in given}
    return [
        review for review in reviews_due(writers, questions) if (review.question, review.reviewer) not in done
    ]


def settle(
    writers: Sequence[str],
    rankings: Mapping[int, Sequence[Ranking]],
    rates: Rates | None = None,
    questions: int = QUESTIONS,
) -> Outcome:
    """The outcome of a story for which every review is in; with one missing, nobody's bonus is known yet."""
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
    strangers = {ranking.reviewer for given in rankings.values() for ranking in given} - set(writers)
    if strangers:
        raise EnsueError(
            f"Reviewer {sorted(strangers)[0]!r} is none of the story's writers, who review each other; "
            f"leave that ranking out."
        )
    settled = tuple(
        Settled(aggregate(writers, rankings[number]), tuple(rankings[number])) for number in sorted(rankings)
    )
    paid = rates or Rates()
    return Outcome(
        questions=settled,
        bonuses=earnings(settled, paid),
        costs=costs([settled], paid),
        agreement=agreement([(one.rankings, one.standings) for one in settled]),
    )
