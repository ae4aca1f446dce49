"""Aggregate rankings: small cases by hand, and what must hold of any."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy.stats import rankdata

from ensue.benchmarks.crowd.rankings import (
    ReviewerRanking,
    aggregate,
    agreeing_pairs,
    agreement,
    shared_ranks,
)
from ensue.errors import EnsueError

WRITERS = ("ana", "ben", "cas", "dot")


@some.composite
def rounds(draw: some.DrawFn) -> list[ReviewerRanking]:
    """Four writers, each ranking the three others, ties allowed."""
    return [
        ReviewerRanking(who, {other: draw(some.integers(1, 3)) for other in WRITERS if other != who})
        for who in WRITERS
    ]


def test_unanimous_reviewers_give_their_own_order() -> None:
    order = {name: place for place, name in enumerate(WRITERS)}
    rankings = [
        ReviewerRanking(
            who, {o: 1 + sum(order[x] < order[o] for x in WRITERS if x != who) for o in WRITERS if o != who}
        )
        for who in WRITERS
    ]
    standings = aggregate(WRITERS, rankings)
    assert [one.writer for one in standings] == list(WRITERS)
    assert [one.place for one in standings] == [1, 2, 3, 4]
    assert [agreeing_pairs(one, standings) for one in rankings] == [3, 3, 3, 3]
    assert agreement([(rankings, standings)]) == 1.0


@given(rounds())
def test_places_are_those_of_the_mean_of_scipys_ranks(rankings: list[ReviewerRanking]) -> None:
    given_ranks: dict[str, list[float]] = {writer: [] for writer in WRITERS}
    for ranking in rankings:
        names = list(ranking.places)
        for name, rank in zip(names, rankdata([ranking.places[n] for n in names]), strict=True):
            given_ranks[name].append(float(rank))
    sums = [sum(given_ranks[writer]) for writer in WRITERS]
    wanted = dict(zip(WRITERS, rankdata(sums, method="min"), strict=True))
    standings = aggregate(WRITERS, rankings)
    assert {one.writer: one.place for one in standings} == wanted
    assert all(one.sharing == sums.count(sums[WRITERS.index(one.writer)]) for one in standings)
    assert sum(one.mean_rank for one in standings) == 8


@given(rounds(), some.permutations(WRITERS), some.permutations(range(4)))
def test_neither_the_order_of_writers_nor_of_reviews_matters(
    rankings: list[ReviewerRanking], writers: list[str], order: list[int]
) -> None:
    one = {s.writer: s for s in aggregate(WRITERS, rankings)}
    assert {s.writer: s for s in aggregate(writers, [rankings[place] for place in order])} == one


@given(rounds())
def test_only_pairs_that_both_order_alike_agree(rankings: list[ReviewerRanking]) -> None:
    standings = aggregate(WRITERS, rankings)
    place = {one.writer: one.place for one in standings}
    for ranking in rankings:
        given_places = ranking.places
        wanted = sum(
            (given_places[a] < given_places[b] and place[a] < place[b])
            or (given_places[a] > given_places[b] and place[a] > place[b])
            for a, b in combinations(given_places, 2)
        )
        assert agreeing_pairs(ranking, standings) == wanted


@given(some.dictionaries(some.sampled_from("abcdef"), some.integers(1, 4), min_size=1))
def test_shared_ranks_are_scipys(places: dict[str, int]) -> None:
    assert [float(rank) for rank in shared_ranks(places).values()] == rankdata(list(places.values())).tolist()


@pytest.mark.parametrize(
    ("rankings", "said"),
    [
        ([ReviewerRanking("ana", {"ana": 1, "ben": 2, "cas": 3})], "'ana' ranks their own response"),
        ([ReviewerRanking("ana", {"ben": 1, "cas": 2, "eve": 3})], "ranks 'eve', who did not answer"),
        ([ReviewerRanking("ana", {"ben": 1, "cas": 2})], "has not ranked the response of 'dot'"),
        ([ReviewerRanking("ana", {"ben": 0, "cas": 2, "dot": 3})], "not between 1 and 3"),
        ([ReviewerRanking("ana", {"ben": 1, "cas": 2, "dot": 4})], "not between 1 and 3"),
        ([ReviewerRanking("ana", {"ben": 1, "cas": 2, "dot": 3})] * 2, "two rankings of one question"),
        ([ReviewerRanking("ana", {"ben": 1, "cas": 2, "dot": 3})], "Nobody has ranked the response of 'ana'"),
    ],
)
def test_rankings_that_cannot_be_are_refused(rankings: list[ReviewerRanking], said: str) -> None:
    with pytest.raises(EnsueError, match=said):
        aggregate(WRITERS, rankings)


def test_other_refusals() -> None:
    with pytest.raises(EnsueError, match="named twice"):
        aggregate(["ana", "ana"], [])
    with pytest.raises(EnsueError, match="no pair"):
        agreement([])


def test_who_did_not_write_on_the_story_does_not_rank() -> None:
    rankings = [ReviewerRanking("eve", dict.fromkeys(WRITERS, 1))]
    with pytest.raises(EnsueError, match="Reviewer 'eve' is none of the story's writers"):
        aggregate(WRITERS, rankings)
