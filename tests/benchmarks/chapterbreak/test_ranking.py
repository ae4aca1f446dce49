"""Ranking and judging a choice: ties are no hits, and words count by what the scored tokens cover."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from ensue.benchmarks.base import content_of
from ensue.benchmarks.chapterbreak.data.examples import Example
from ensue.benchmarks.chapterbreak.ranking import Gold, Ranked, SuffixChoice, ladder, words_covered
from ensue.benchmarks.chapterbreak.task import items_of, judge, metric_rows


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


GOLD, FIRST, SECOND, OTHER = "the gold suffix", "a negative", "another", "of another book"
EXAMPLE = Example("pg19/w7/3", "pg19", "w7", "chapter", "So it went on.", GOLD, (FIRST, SECOND))


def ranked(gold: float, prefix: int = 256, suffix: int = 128, said: Gold | None = None) -> Ranked:
    question = SuffixChoice(EXAMPLE, {"in-book": (FIRST, SECOND), "out-of-book": (OTHER,)})
    scores = {GOLD: gold, FIRST: -2.0, SECOND: -1.5, OTHER: -9.0}
    return Ranked(question, prefix, suffix, scores, 200, said)


def test_an_item_holds_all_that_was_asked_and_scored() -> None:
    own, other = items_of(ranked(-2.5, said=Gold(-40.0, 16, 10.0)), several_suffix_lengths=True)
    assert own == {
        "id": "pg19/w7/3#n256#s128",
        "cluster": "pg19/w7",
        "task": "pg19",
        "settings": {
            "boundary": "chapter",
            "negatives": "in-book",
            "prefix_tokens": 256,
            "suffix_tokens": 128,
        },
        "scores": {"accuracy": 0.0, "rank": 3.0, "margin": -1.0, "ties": 0.0},
        "outputs": {
            "example": "pg19/w7/3",
            "suffixes": [content_of(text) for text in (GOLD, FIRST, SECOND)],
            "scores": [-2.5, -2.0, -1.5],
            "choice": 2,
            "context_tokens": 200,
            "gold": {"logprob": -40.0, "tokens": 16, "words": 10.0},
        },
        "content": own["content"],
        "asked": content_of("So it went on.", sorted(map(content_of, (FIRST, GOLD, SECOND)))),
    }
    assert other["id"] == "pg19/w7/3#n256#s128#out-of-book"
    assert (other["outputs"]["choice"], other["scores"]["accuracy"]) == (0, 1.0)
    plain, _ = items_of(ranked(-1.0), several_suffix_lengths=False)
    assert plain["id"] == "pg19/w7/3#n256"
    assert "gold" not in plain["outputs"]


def test_rows_are_means_and_perplexity_is_over_words() -> None:
    """Two examples: 40 nats over 10 words and 20 over 10 make exp(60 / 20); 16 + 8 subwords over 20 words."""
    found = [
        item
        for one in (
            ranked(-1.0, prefix=512, said=Gold(-40.0, 16, 10.0)),
            ranked(-2.5, prefix=512, said=Gold(-20.0, 8, 10.0)),
            ranked(-1.0, prefix=256),
        )
        for item in items_of(one, several_suffix_lengths=False)
        if item["settings"]["negatives"] == "in-book"
    ]
    rows = list(metric_rows(found))
    assert [(row["settings"]["prefix_tokens"], row["metric"]) for row in rows] == [
        *((256, metric) for metric in ("accuracy", "rank", "margin", "ties")),
        *((512, metric) for metric in ("accuracy", "rank", "margin", "ties")),
        (512, "word_perplexity"),
        (512, "subwords_per_word"),
    ]
    values = {row["metric"]: row for row in rows[4:]}
    assert values["accuracy"]["value"] == 0.5
    assert values["rank"]["value"] == 2.0
    assert values["margin"]["value"] == pytest.approx((0.5 - 1.0) / 2)
    assert values["ties"]["value"] == 0.0
    assert values["word_perplexity"]["value"] == pytest.approx(math.exp(60 / 20))
    assert values["subwords_per_word"]["value"] == pytest.approx(24 / 20)
    assert {(row["task"], row["n"], row["clusters"]) for row in rows[4:]} == {("pg19", 2, 1)}
    assert rows[0]["settings"] == found[-1]["settings"]


def test_prefixes_that_do_not_fit_become_the_longest_that_does() -> None:
    notes: Counter[str] = Counter()
    assert ladder([512, 128, 128], None, notes) == [128, 512]
    assert ladder([512, 128, 256], 256, notes) == [128, 256]
    assert notes == {"prefix lengths above 256 tokens, which do not fit and were cut to that": 1}
