"""From each reviewer's ranking of the others' responses to one ranking of all (§5.3), with ties where they are even.

The paper does not say how rankings are compiled. Here every response has the mean of the ranks it was given, those
with equal means being tied: the usual choice where all are ranked equally often, and how the published evaluation of
models turns ratings into ranks. Means are exact fractions, so that a tie never hangs on rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import NamedTuple

from ensue.errors import EnsueError


class ReviewerRanking(NamedTuple):
    """One reviewer's view: for each response, named by its writer, a place from 1; equal places are ties."""

    reviewer: str
    places: Mapping[str, int]


class Standing(NamedTuple):
    """A response in the aggregate ranking: its place from 1, how many share it, and the mean of its ranks."""

    writer: str
    place: int
    sharing: int
    mean_rank: Fraction


def check_rankings(writers: Sequence[str], rankings: Sequence[ReviewerRanking]) -> None:
    """Refuse rankings that the protocol cannot have.

    These are rankings by somebody who did not write on the story, of one's own response, of a part, or twice by one
    reviewer.
    """
    known = set(writers)
    if len(known) != len(writers):
        raise EnsueError("A writer is named twice; every response of a question has another writer.")
    if len({ranking.reviewer for ranking in rankings}) != len(rankings):
        raise EnsueError("A reviewer has two rankings of one question; keep the later one.")
    for ranking in rankings:
        who = f"Reviewer {ranking.reviewer!r}"
        if ranking.reviewer not in known:
            raise EnsueError(
                f"{who} is none of the story's writers, who review each other; leave that ranking out."
            )
        if ranking.reviewer in ranking.places:
            raise EnsueError(f"{who} ranks their own response; give them those of the others only.")
        if strangers := sorted(set(ranking.places) - known):
            raise EnsueError(f"{who} ranks {strangers[0]!r}, who did not answer this question.")
        if missing := sorted(known - set(ranking.places) - {ranking.reviewer}):
            raise EnsueError(
                f"{who} has not ranked the response of {missing[0]!r}; all others must have a place."
            )
        if any(place < 1 or place > len(ranking.places) for place in ranking.places.values()):
            raise EnsueError(f"{who} gives a place that is not between 1 and {len(ranking.places)}.")


def aggregate(writers: Sequence[str], rankings: Sequence[ReviewerRanking]) -> list[Standing]:
    """Order all responses by the mean of their ranks, best first; those that tie share the better place.

    >>> votes = {"a": {"b": 1, "c": 2}, "b": {"a": 1, "c": 2}, "c": {"a": 1, "b": 2}}
    >>> found = aggregate("abc", [ReviewerRanking(*vote) for vote in votes.items()])
    >>> [(one.writer, one.place) for one in found]
    [('a', 1), ('b', 2), ('c', 3)]
    """
    check_rankings(writers, rankings)
    given: dict[str, list[Fraction]] = {writer: [] for writer in writers}
    for ranking in rankings:
        for writer, rank in shared_ranks(ranking.places).items():
            given[writer].append(rank)
    if unseen := [writer for writer, ranks in given.items() if not ranks]:
        raise EnsueError(f"Nobody has ranked the response of {unseen[0]!r}; wait for a review of it.")
    means = {writer: sum(ranks, Fraction()) / len(ranks) for writer, ranks in given.items()}
    # Equal means keep the order the writers were named in.
    ordered = sorted(writers, key=lambda writer: means[writer])
    values = [means[writer] for writer in ordered]
    return [
        Standing(writer, values.index(means[writer]) + 1, values.count(means[writer]), means[writer])
        for writer in ordered
    ]


def shared_ranks(places: Mapping[str, int]) -> dict[str, Fraction]:
    """Return ranks from 1 of the order that places say, tied ones sharing the mean of theirs.

    >>> shared_ranks({"a": 1, "b": 1, "c": 3})
    {'a': Fraction(3, 2), 'b': Fraction(3, 2), 'c': Fraction(3, 1)}
    """
    values = list(places.values())
    return {
        writer: sum(other < place for other in values) + Fraction(values.count(place) + 1, 2)
        for writer, place in places.items()
    }


def agreeing_pairs(ranking: ReviewerRanking, standings: Sequence[Standing]) -> int:
    """Count the pairs of which a reviewer and the aggregate say that the same one is better; a tie never agrees."""
    overall = {one.writer: one.place for one in standings}
    return sum(
        (ranking.places[a] - ranking.places[b]) * (overall[a] - overall[b]) > 0
        for a, b in combinations(ranking.places, 2)
    )


def agreement(questions: Iterable[tuple[Sequence[ReviewerRanking], Sequence[Standing]]]) -> float:
    """Return the share of all reviewers' pairs that agree with the aggregate (the paper's 76 %)."""
    agreeing = pairs = 0
    for rankings, standings in questions:
        for ranking in rankings:
            agreeing += agreeing_pairs(ranking, standings)
            pairs += len(ranking.places) * (len(ranking.places) - 1) // 2
    if not pairs:
        raise EnsueError("There is no pair of ranked responses to agree on.")
    return agreeing / pairs
