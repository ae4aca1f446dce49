"""Ranking sentences: ties are wrong, articles are clusters, and scores are checked."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.qags.falke import Choice, Choices, LabelledSentence, Triplet
from ensue.benchmarks.qags.ranking import choose, pairs, rank, rank_with
from ensue.errors import EnsueError


def triplet(number: int) -> Triplet:
    return Triplet(
        f"t{number}", f"a{number // 2}", f"Source {number}.", "The fog lifted.", "The fog sank the boat."
    )


def choices(name: str, *consistent: bool) -> Choices:
    return Choices(
        name, tuple(Choice(str(n), (LabelledSentence("One.", one),)) for n, one in enumerate(consistent))
    )


def test_a_tie_is_wrong_and_counted() -> None:
    found = rank([triplet(n) for n in range(4)], [0.9, 0.1, 0.3, 0.3, 0.2, 0.7, 0.5, 0.5 - 1e-12])
    assert [item.verdict for item in found.items] == ["right", "tie", "wrong", "tie"]
    assert (found.accuracy.value, found.half.value, found.ties) == (0.25, 0.5, 2)
    assert (found.accuracy.n, found.accuracy.clusters) == (4, 2)


@settings(deadline=None)
@given(st.lists(st.integers(-2, 2), min_size=1, max_size=12))
def test_accuracy_is_counted(gaps: list[int]) -> None:
    scores = [(0.25 * place + gap, 0.25 * place) for place, gap in enumerate(gaps)]
    found = rank([triplet(n) for n in range(len(scores))], [one for pair in scores for one in pair])
    right, tied = sum(a > b for a, b in scores), sum(a == b for a, b in scores)
    assert found.accuracy.value == pytest.approx(right / len(scores))
    assert found.half.value == pytest.approx((right + tied / 2) / len(scores))
    assert found.ties == tied


def test_a_function_scores_source_and_sentence() -> None:
    triplets = [triplet(n) for n in range(3)]
    assert pairs(triplets)[:2] == [("Source 0.", "The fog lifted."), ("Source 0.", "The fog sank the boat.")]
    assert rank_with(triplets, lambda source, sentence: -len(sentence)).accuracy.value == 1.0
    assert rank_with(triplets, lambda source, sentence: len(source)).accuracy.value == 0.0


def test_scores_are_checked() -> None:
    with pytest.raises(EnsueError, match="2 triplets need 4 scores, not 3"):
        rank([triplet(0), triplet(1)], [0.1, 0.2, 0.3])
    with pytest.raises(EnsueError, match="triplet t0 is not a finite number"):
        rank([triplet(0)], [0.1, math.nan])


def test_the_highest_summary_is_chosen_and_equal_ones_by_lot() -> None:
    articles = [choices("a", True, False, False), choices("b", False, True), choices("c", False, False, True)]
    found = choose(articles, [[0.9, 0.1, 0.2], [0.9, 0.1], [0.4, 0.2, 0.4]])
    assert found.inconsistent.value == pytest.approx((0 + 1 + 1 / 2) / 3)
    assert found.by_chance == pytest.approx((2 / 3 + 1 / 2 + 2 / 3) / 3)
    with pytest.raises(EnsueError, match="score every summary"):
        choose(articles, [[0.9], [0.9, 0.1], [0.4, 0.2, 0.4]])
    with pytest.raises(EnsueError, match="article b is not a finite number"):
        choose(articles, [[0.9, 0.1, 0.2], [0.9, math.inf], [0.4, 0.2, 0.4]])
