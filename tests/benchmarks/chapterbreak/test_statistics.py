"""Statistics: the same as counted at once."""

from __future__ import annotations

import statistics

from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.chapterbreak.data import Example
from ensue.benchmarks.chapterbreak.statistics import Spread, Statistics, statistics_of


@given(st.lists(st.integers(0, 10**6), min_size=1))
def test_a_spread_is_the_mean_the_least_and_the_most(numbers):
    spread = Spread()
    for number in numbers:
        spread.add(number)
    assert spread.as_dict() == {"mean": statistics.fmean(numbers), "min": min(numbers), "max": max(numbers)}


def test_nothing_has_no_mean():
    assert Spread().as_dict() == {"mean": None, "min": None, "max": None}
    assert Statistics().as_dict()["examples"] == {}


def example(boundary, split, work, context, gold):
    return Example(f"{boundary}:{split}/{work}", split, work, boundary, context, gold, ("n",))


def test_examples_are_counted_by_boundary_and_split():
    examples = [
        example("dialogue", "b", "1", "one two", "one"),
        example("chapter", "b", "1", "one two three four", "one two"),
        example("chapter", "b", "1", "one two", "one two three"),
        example("chapter", "b", "2", "one two\n\nthree", "one"),
        example("chapter", "a", "2", "one", "one two"),
    ]
    found = statistics_of(examples)
    assert list(found) == ["chapter", "dialogue"]
    assert list(found["chapter"]) == ["a", "b"]
    assert found["chapter"]["b"] == {"works": 2, "examples": 3, "context_words": 3.0, "gold_words": 2.0}
    assert found["dialogue"]["b"] == {"works": 1, "examples": 1, "context_words": 2.0, "gold_words": 1.0}
