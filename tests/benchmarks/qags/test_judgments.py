"""Consistency by majority and mean, and agreement against ratings written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.data import JudgedSentence, JudgedSummary, Response, read_judgment_file
from ensue.benchmarks.qags.judgments import agreement, consistency, human_consistency, majority, ratings
from ensue.metrics.krippendorff import krippendorff_alpha
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
    # Summaries are drawn whole: every round is the alpha of three of them, with repetition.
    whole = {0: table[:3], 1: table[3:4], 2: table[4:]}
    possible = [
        krippendorff_alpha([*whole[a], *whole[b], *whole[c]])
        for a in range(3)
        for b in range(3)
        for c in range(3)
        if (a, b, c) != (1, 1, 1)
    ]
    for draw in found.draws[np.isfinite(found.draws)]:
        assert min(abs(draw - one) for one in possible) < 1e-9


def test_ratings_have_a_column_a_worker(summaries: list[JudgedSummary]) -> None:
    other = JudgedSummary("own-9", "An article.", (JudgedSentence("One.", (Response("77", True),)),))
    table, clusters = ratings([*summaries[1:2], other])
    np.testing.assert_array_equal(table, [[0, 0, 0, np.nan], [np.nan, np.nan, np.nan, 1]])
    assert clusters == ["own-1", "own-9"]
