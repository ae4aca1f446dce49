"""Overlap with the source against counts by hand and a table filled cell by cell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.qags.measures import (
    BASELINES,
    FUNCTION_WORDS,
    TO_BEAT,
    content_words,
    longest_common,
)

SOURCE = "The old ferry left Port Ellery at noon. The fog stopped it an hour later."
tokens = st.lists(st.sampled_from("abcd"), max_size=12)


def naive_precision(source: list[str], summary: list[str], n: int) -> float:
    left = [source[i : i + n] for i in range(len(source) - n + 1)]
    runs = [summary[i : i + n] for i in range(len(summary) - n + 1)]
    found = 0
    for run in runs:
        if run in left:
            left.remove(run)
            found += 1
    return found / len(runs) if runs else 0.0


def naive_common(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            table[i][j] = table[i - 1][j - 1] + 1 if one == other else max(table[i - 1][j], table[i][j - 1])
    return table[-1][-1]


@given(tokens, tokens, st.integers(1, 3))
def test_precision_takes_a_run_out_of_the_source_once(source: list[str], summary: list[str], n: int) -> None:
    found = BASELINES[f"overlap-{n}"](" ".join(source), " ".join(summary))
    assert found == pytest.approx(naive_precision(source, summary, n))


@given(tokens, tokens)
def test_the_longest_common_subsequence_is_that_of_the_table(a: list[str], b: list[str]) -> None:
    assert longest_common(a, b) == naive_common(a, b)
    found = BASELINES["overlap-l"](" ".join(a), " ".join(b))
    assert found == (naive_common(a, b) / len(b) if b else 0.0)


@pytest.mark.parametrize("name", list(BASELINES))
def test_a_copy_has_one_and_something_else_has_none(name: str) -> None:
    score = BASELINES[name]
    assert score(SOURCE, SOURCE) == 1.0
    assert score(SOURCE, "Port Ellery at noon") == 1.0
    assert score(SOURCE, "Seven geese slept under willows") == 0.0
    assert score(SOURCE, "") == 0.0
    assert score("", "Port Ellery at noon") == 0.0


def test_the_baseline_to_beat_counts_pairs_of_words() -> None:
    assert BASELINES[TO_BEAT](SOURCE, "The fog left Port Ellery.") == 3 / 4


def test_function_words_are_left_out() -> None:
    assert content_words("It was the OLD ferry's crew, not she.") == ["old", "ferry", "crew"]
    assert all(content_words(f"{word} x") == ["x"] for word in FUNCTION_WORDS)
