"""Ranking and judging a choice: ties are no hits, and words count by what the scored tokens cover."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from ensue.benchmarks.base import content_of
from ensue.benchmarks.chapterbreak.data.examples import Example
from ensue.benchmarks.chapterbreak.ranking import (
    Gold,
    Ranked,
    SegmentRanker,
    SuffixChoice,
    _gold,
    _mean,
    _within,
    ladder,
    words_covered,
)
from ensue.benchmarks.chapterbreak.task import COMPARING, items_of, judge, metric_rows
from ensue.errors import RunFailed
from ensue.models.card import ModelCard
from ensue.models.request import Score
from ensue.progress import ignore
from ensue.stats.clustered import clustered_interval, clustered_ratio


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
        "content": content_of("So it went on.", GOLD, (FIRST, SECOND)),
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


def test_intervals_of_rows_are_over_works_and_only_counted_words_make_perplexities() -> None:
    golds = [Gold(-40.0, 16, 10.0), Gold(-20.0, 8, 10.0), Gold(-9.0, 3, 2.0), Gold(-9.0, 3, None), None]
    found = []
    for place, gold in enumerate(golds):
        (item, _) = items_of(ranked(-1.0 - place / 4, said=gold), several_suffix_lengths=False)
        item["cluster"] = f"work {place // 2}"
        found.append(item)
    rows = {row["metric"]: row for row in metric_rows(found)}
    clusters = [item["cluster"] for item in found]
    for metric, bounds in (
        ("accuracy", (0.0, 1.0)),
        ("rank", (1.0, math.inf)),
        ("margin", (-math.inf, math.inf)),
        ("ties", (0.0, 1.0)),
    ):
        figure = clustered_interval([item["scores"][metric] for item in found], clusters, bounds=bounds)
        assert rows[metric] == {
            "task": "pg19",
            "metric": metric,
            "value": figure.value,
            "ci95": [figure.low, figure.high],
            "n": 5,
            "clusters": 3,
            "settings": found[0]["settings"],
        }
    nats, tokens, words = [40.0, 20.0, 9.0], [16, 8, 3], [10.0, 10.0, 2.0]
    surprisal = clustered_ratio(nats, words, clusters[:3], bounds=(0.0, math.inf))
    assert surprisal.low is not None
    assert surprisal.high is not None
    assert (rows["word_perplexity"]["n"], rows["word_perplexity"]["clusters"]) == (3, 2)
    assert rows["word_perplexity"]["value"] == pytest.approx(math.exp(69 / 22))
    ends = [math.exp(surprisal.low), math.exp(min(surprisal.high, 700.0))]
    assert rows["word_perplexity"]["ci95"] == pytest.approx(ends)
    ratio = clustered_ratio(tokens, words, clusters[:3], bounds=(0.0, math.inf))
    assert rows["subwords_per_word"]["value"] == pytest.approx(27 / 22)
    assert rows["subwords_per_word"]["ci95"] == pytest.approx([ratio.low, ratio.high])


def test_a_hopeless_model_has_a_perplexity_all_the_same() -> None:
    (item, _) = items_of(ranked(-1.0, said=Gold(-9000.0, 9, 2.0)), several_suffix_lengths=False)
    (row,) = [row for row in metric_rows([item]) if row["metric"] == "word_perplexity"]
    assert (row["value"], row["ci95"]) == (math.exp(700.0), [None, None])


def test_rows_are_of_one_split_boundary_kind_and_suffix_length_each() -> None:
    found = []
    for split, boundary in (("pg19", "chapter"), ("ao3", "chapter"), ("pg19", "cause")):
        for prefix, suffix in ((512, 128), (256, 128), (512, 64)):
            for item in items_of(ranked(-1.0, prefix, suffix), several_suffix_lengths=True):
                item["task"] = split
                item["settings"]["boundary"] = boundary
                found.append(item)
    rows = [row for row in metric_rows(found) if row["metric"] == "accuracy"]
    assert [(row["task"], *row["settings"].values(), row["n"]) for row in rows] == [
        (split, boundary, kind, prefix, suffix, 1)
        for split, boundary in (("pg19", "chapter"), ("ao3", "chapter"), ("pg19", "cause"))
        for suffix in (128, 64)
        for kind in ("in-book", "out-of-book")
        for prefix in ((256, 512) if suffix == 128 else (512,))
    ]


def test_progress_of_a_group_is_told_in_examples() -> None:
    told: list[tuple[int, int, str]] = []
    within = _within(lambda *state: told.append(state), 16, 10, 40)
    for done, of in ((0, 200), (99, 200), (100, 200), (200, 200), (0, 0)):
        within(done, of, "tokens")
    assert told == [(place, 40, "examples") for place in (16, 20, 21, 26, 26)]


def scored(*logprobs: float, detail: bool = True) -> Score:
    spans = tuple((2 * place, 2 * place + 2) for place in range(len(logprobs)))
    found = Score(sum(logprobs), len(logprobs), sum(logprobs) / len(logprobs), logprobs, spans)
    return found if detail else found._replace(token_logprobs=None, token_spans=None)


def test_shorter_suffixes_are_the_first_tokens_of_longer_ones() -> None:
    found = scored(-1.0, -2.0, -6.0)
    assert [_mean(found, length) for length in (1, 2, 3, 4)] == [-1.0, -1.5, -3.0, -3.0]
    assert _mean(scored(-1.0, -2.0, -6.0, detail=False), 2) == -3.0
    text = "ab cde"
    assert [_gold(text, found, length) for length in (1, 2, 3, 4)] == [
        (-1.0, 1, 1.0),
        (-3.0, 2, pytest.approx(1 + 1 / 3)),
        (-9.0, 3, 2.0),
        (-9.0, 3, 2.0),
    ]
    assert _gold(text, scored(-1.0, -2.0, detail=False), 1) == (0.0, 1, None)
    assert _gold(text, found._replace(token_spans=((0, 2), (0, 6), (2, 3))), 3).words == 2.0


class Segments:
    """A segment-level model that gives what it is told to."""

    card = ModelCard(
        name="some segments",
        kind="test",
        source="-",
        identity={"weights": "0123456789abcdef", "dtype": "float16"},
    )

    def __init__(self, rows: list[list[float]], most: int | None) -> None:
        self.rows, self.max_prefix_tokens = rows, most

    def score_suffixes(self, context: str, suffixes: Sequence[str], **lengths: Any) -> list[list[float]]:
        assert context == EXAMPLE.context
        assert list(suffixes) == [GOLD, FIRST, SECOND]
        assert lengths == {"prefix_tokens": [128, 256], "suffix_tokens": 64}
        return self.rows


def segment_ranker(rows: list[list[float]], most: int | None = 256) -> SegmentRanker:
    return SegmentRanker(model=Segments(rows, most), suffixes=[64], asked=[512, 128])


QUESTION = SuffixChoice(EXAMPLE, {"in-book": (FIRST, SECOND, FIRST)})


def test_a_segment_level_model_is_ranked_prefix_by_prefix() -> None:
    ranker = segment_ranker([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    told: list[tuple[int, int, str]] = []
    assert (
        list(ranker.rank([QUESTION, QUESTION], lambda *state: told.append(state)))
        == [
            Ranked(QUESTION, 128, 64, {GOLD: 1.0, FIRST: 2.0, SECOND: 3.0}),
            Ranked(QUESTION, 256, 64, {GOLD: 4.0, FIRST: 5.0, SECOND: 6.0}),
        ]
        * 2
    )
    assert told == [(1, 2, "examples"), (2, 2, "examples")]
    assert ranker.signature == "model:some-segments weights:0123456789ab suffixes:segments"
    assert ranker.notes == {"prefix lengths above 256 tokens, which do not fit and were cut to that": 1}
    assert (ranker.tokens, ranker.skipped) == (0, Counter())
    assert segment_ranker([], None).prefixes == [128, 512]


@pytest.mark.parametrize(
    "rows", [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]] * 3, [[1.0, 2.0]] * 2, [[1.0] * 4] * 2]
)
def test_a_segment_level_model_must_score_every_suffix_after_every_prefix(rows: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="zip"):
        list(segment_ranker(rows).rank([QUESTION], ignore))


def test_a_segment_level_score_that_is_no_number_names_its_text_and_dtype() -> None:
    with pytest.raises(RunFailed) as raised:
        list(segment_ranker([[1.0, 2.0, 3.0], [4.0, math.nan, math.inf]]).rank([QUESTION], ignore))
    assert str(raised.value).startswith(
        f"some segments makes nan of the text that begins {FIRST!r} in float16, which"
    )


def test_an_item_is_compared_by_its_example_on_its_own_task_and_settings() -> None:
    (item, _) = items_of(ranked(-1.0), several_suffix_lengths=True)
    question, way = (
        {"boundary": "chapter", "negatives": "in-book"},
        {"prefix_tokens": 256, "suffix_tokens": 128},
    )
    assert item["settings"] == question | way
    assert COMPARING.asked(item) == ("pg19/w7/3", "pg19", question, way)
    assert COMPARING.asked({**item, "outputs": None})[0] == "pg19/w7/3#n256#s128"
    assert COMPARING.asked({**item, "outputs": {}})[0] == "pg19/w7/3#n256#s128"
