"""From the scores of suffixes to items and metric rows: is the gold suffix above all others?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ensue.benchmarks.base import content_of
from ensue.benchmarks.chapterbreak.ranking import Ranked
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import Interval, clustered_interval, clustered_ratio
from ensue.stats.ranges import POSITIVE, range_of

METRICS = ("accuracy", "rank", "margin", "ties")
# Two scores no further apart than this are the same.
TIE = 1e-6


def judge(gold: float, negatives: Sequence[float]) -> dict[str, float]:
    """Right only where the gold suffix is above every negative; one that ties with it ranks before it.

    >>> judge(-2.0, [-3.0, -2.5]) == {"accuracy": 1.0, "rank": 1.0, "margin": 0.5, "ties": 0.0}
    True
    >>> judge(-2.0, [-2.0, -1.0, -4.0]) == {"accuracy": 0.0, "rank": 3.0, "margin": -1.0, "ties": 0.0}
    True
    """
    margin = gold - max(negatives)
    return {
        "accuracy": float(margin > TIE),
        "rank": 1.0 + sum(gold - negative <= TIE for negative in negatives),
        "margin": margin,
        "ties": float(abs(margin) <= TIE),
    }


def items_of(ranked: Ranked, several_suffix_lengths: bool) -> Iterator[Item]:
    """An item for each kind of negatives."""
    example = ranked.question.example
    for kind, texts in ranked.question.negatives.items():
        scores = [ranked.scores[example.gold], *(ranked.scores[text] for text in texts)]
        name = f"{example.id}#n{ranked.prefix_tokens}"
        name += f"#s{ranked.suffix_tokens}" if several_suffix_lengths else ""
        name += "" if kind == "in-book" else f"#{kind}"
        outputs: dict[str, Any] = {
            "example": example.id,
            "scores": scores,
            "choice": max(range(len(scores)), key=scores.__getitem__),
            "context_tokens": ranked.context_tokens,
        }
        if ranked.gold is not None:
            outputs["gold"] = ranked.gold._asdict()
        yield Item(
            id=name,
            cluster=f"{example.split}/{example.work}",
            task=example.split,
            settings={
                "boundary": example.boundary,
                "negatives": kind,
                "prefix_tokens": ranked.prefix_tokens,
                "suffix_tokens": ranked.suffix_tokens,
            },
            scores=judge(scores[0], scores[1:]),
            outputs=outputs,
            content=content_of(example.context, example.gold, texts),
        )


def metric_rows(items: Sequence[Item]) -> Iterator[MetricRow]:
    """Rows for each split, boundary, kind of negatives, suffix and prefix length, shorter prefixes first."""
    groups: dict[tuple[str, str, str, int], dict[int, list[Item]]] = {}
    for item in items:
        s = item["settings"]
        place = (item["task"], s["boundary"], s["negatives"], s["suffix_tokens"])
        groups.setdefault(place, {}).setdefault(s["prefix_tokens"], []).append(item)
    for by_prefix in groups.values():
        for _, chosen in sorted(by_prefix.items()):
            yield from _rows(chosen)


def _rows(items: list[Item]) -> Iterator[MetricRow]:
    clusters = [item["cluster"] for item in items]
    for metric in METRICS:
        values = [item["scores"][metric] for item in items]
        yield _row(items, metric, clustered_interval(values, clusters, bounds=range_of(metric)))
    counted = [item for item in items if item["outputs"].get("gold", {}).get("words")]
    if counted:
        golds = [item["outputs"]["gold"] for item in counted]
        clusters = [item["cluster"] for item in counted]
        words = [gold["words"] for gold in golds]
        surprisal = clustered_ratio([-gold["logprob"] for gold in golds], words, clusters, bounds=POSITIVE)
        # The mean over subwords times subwords per word is the sum over words (the paper's appendix E).
        yield _row(items, "word_perplexity", _exponential(surprisal))
        ratio = clustered_ratio([gold["tokens"] for gold in golds], words, clusters, bounds=POSITIVE)
        yield _row(items, "subwords_per_word", ratio)


def _exponential(interval: Interval) -> Interval:
    value, low, high = (None if x is None else math.exp(min(x, 700.0)) for x in interval[:3])
    assert value is not None  # only the ends of an interval may be missing
    return interval._replace(value=value, low=low, high=high)


def _row(items: list[Item], metric: str, found: Interval) -> MetricRow:
    return MetricRow(
        task=items[0]["task"],
        metric=metric,
        value=found.value,
        ci95=[found.low, found.high],
        n=found.n,
        clusters=found.clusters,
        settings=items[0]["settings"],
    )
