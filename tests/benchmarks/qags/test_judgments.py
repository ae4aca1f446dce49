"""Consistency by majority and mean, and agreement against ratings written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.data import JudgedSentence, JudgedSummary, Response, read_judgment_file
from ensue.benchmarks.qags.judgments import agreement, consistency, human_consistency, majority, ratings
from ensue.metrics.agreement import krippendorff_alpha
from tests.benchmarks.qags.invented import judged, write_lines


def sentence(votes: list[bool]) -> JudgedSentence:
    return JudgedSentence("A sentence.", tuple(Response(str(n), vote) for n, vote in enumerate(votes)))


@pytest.fixture
def summaries(tmp_path: Path) -> list[JudgedSummary]:
    rows = [
        judged(("yes", "yes", "no"), ("no", "no", "yes"), ("yes", "yes", "yes")),
        judged(("no", "no", "no")),
        judged(("yes", "no", "yes"), ("yes", "yes", "yes")),
    ]
    return read_judgment_file(write_lines(tmp_path / "own.jsonl", rows), "own")


def test_consistency_is_the_share_of_sentences_with_a_majority(summaries: list[JudgedSummary]) -> None:
    assert human_consistency(summaries).tolist() == [2 / 3, 0.0, 1.0]
    assert consistency(summaries[0]) == 2 / 3


@given(st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_majority_is_more_than_half(votes: list[bool]) -> None:
    assert majority(sentence(votes)) == (sorted(votes)[(len(votes) - 1) // 2])


def test_agreement_is_alpha_of_all_sentences(summaries: list[JudgedSummary]) -> None:
    table = [[1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [1, 1, 1]]
    found = agreement(summaries, rounds=50)
    assert found.value == pytest.approx(krippendorff_alpha(table), abs=1e-12)
    assert (found.n, found.units) == (6, 3)
    assert found.draws is not None
    assert len(found.draws) == 50
    # Summaries are weighed whole, and one judged at random is made up: agreement is less than perfect in a round
    # in which only what agrees has weight, and never below what the worst summary gives.
    assert found.draws.max() < 1.0
    assert found.draws.std() > 0.1
    low, high = found.interval()
    assert low is not None
    assert high is not None
    assert low < found.value < high


def test_workers_who_all_agree_are_not_certain_to() -> None:
    def judged(number: int) -> JudgedSummary:
        responses = tuple(Response(str(worker), number % 2 == 0) for worker in range(3))
        return JudgedSummary(f"own-{number}", "An article.", (JudgedSentence("One.", responses),))

    found = agreement([judged(number) for number in range(40)])
    low, high = found.interval()
    assert (found.value, high) == (1.0, 1.0)
    # One of 40 judged at random would take away about 1 / 41 at the median, and 3.7 times that at the end.
    assert low == pytest.approx(1.0 - 3.7 / 41, abs=0.025)


def test_ratings_have_a_column_a_worker(summaries: list[JudgedSummary]) -> None:
    other = JudgedSummary("own-9", "An article.", (JudgedSentence("One.", (Response("77", True),)),))
    table, clusters = ratings([*summaries[1:2], other])
    np.testing.assert_array_equal(table, [[0, 0, 0, np.nan], [np.nan, np.nan, np.nan, 1]])
    assert clusters == ["own-1", "own-9"]
