"""Judging a choice: ties are no hits, and words count by what the scored tokens cover."""

from __future__ import annotations

import pytest

from ensue.benchmarks.chapterbreak.judging import judge
from ensue.benchmarks.chapterbreak.ranking import words_covered


@pytest.mark.parametrize(
    ("gold", "negatives", "accuracy", "rank", "ties"),
    [
        (-1.0, [-2.0, -3.0], 1.0, 1.0, 0.0),
        (-1.0, [-2.0, -1.0 - 5e-7], 0.0, 2.0, 1.0),
        (-1.0, [-2.0, -1.0 + 5e-7], 0.0, 2.0, 1.0),
        (-1.0, [-1.0 - 2e-6, -9.0], 1.0, 1.0, 0.0),
        (-1.0, [-0.5, -1.0, -0.1], 0.0, 4.0, 0.0),
    ],
)
def test_a_tie_with_the_best_negative_is_no_hit(
    gold: float, negatives: list[float], accuracy: float, rank: float, ties: float
) -> None:
    found = judge(gold, negatives)
    assert (found["accuracy"], found["rank"], found["ties"]) == (accuracy, rank, ties)
    assert found["margin"] == gold - max(negatives)


def test_words_are_counted_by_what_is_covered() -> None:
    assert words_covered("\n\nThe old bridge", 2) == 0.0
    assert words_covered("\n\nThe old bridge", 5) == 1.0
    assert words_covered("\n\nThe old bridge", 6) == 1.0
    assert words_covered("\n\nThe old bridge", 7) == pytest.approx(1 + 1 / 3)
    assert words_covered("\n\nThe old bridge", 99) == 3.0
