"""Which of two sentences a metric holds for the consistent one (table 4.5), and which summary it would choose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from ensue.benchmarks.qags.falke import Choices, Triplet
from ensue.errors import EnsueError
from ensue.stats.clustered import Interval, clustered_interval
from ensue.stats.ranges import SHARE

Verdict = Literal["right", "tie", "wrong"]

# Two scores no further apart than this are the same: sums of the same numbers in another order differ by less.
TIE = 1e-9


class Ranked(NamedTuple):
    """A triplet, the scores of its two sentences, and what follows."""

    triplet: Triplet
    consistent: float
    inconsistent: float
    verdict: Verdict


class Ranking(NamedTuple):
    """All triplets ranked.

    `accuracy` counts a tie as wrong: a metric that cannot tell two sentences apart has not ranked the consistent
    one higher, and a metric that gives all sentences one score has 0. `half` counts a tie as half right, as a
    coin toss would on average: such a metric has 0.5. Triplets of one article are resampled together.
    """

    accuracy: Interval
    half: Interval
    ties: int
    items: tuple[Ranked, ...]


class Chosen(NamedTuple):
    """How often the summary that a metric scores highest is inconsistent, and how often any one is.

    Where several share the highest score, each is chosen with equal chance, which is counted as its share.
    """

    inconsistent: Interval
    by_chance: float


def pairs(triplets: Sequence[Triplet]) -> list[tuple[str, str]]:
    """Every source sentence with each of its two sentences, the consistent first: what is to be scored."""
    return [
        (triplet.source, sentence)
        for triplet in triplets
        for sentence in (triplet.consistent, triplet.inconsistent)
    ]


def rank(triplets: Sequence[Triplet], scores: Sequence[float]) -> Ranking:
    """The ranking by scores of `pairs`, in that order; the higher score is the more consistent sentence."""
    if not triplets or len(scores) != 2 * len(triplets):
        raise EnsueError(
            f"{len(triplets)} triplets need {2 * len(triplets)} scores, not {len(scores)}; score every pair."
        )
    items = tuple(
        _ranked(triplet, float(scores[2 * place]), float(scores[2 * place + 1]))
        for place, triplet in enumerate(triplets)
    )
    clusters = [triplet.cluster for triplet in triplets]
    right = [float(item.verdict == "right") for item in items]
    tied = [float(item.verdict == "tie") for item in items]
    halves = [one + other / 2.0 for one, other in zip(right, tied, strict=True)]
    return Ranking(
        clustered_interval(right, clusters, bounds=SHARE),
        clustered_interval(halves, clusters, bounds=SHARE),
        int(sum(tied)),
        items,
    )


def rank_with(triplets: Sequence[Triplet], score: Callable[[str, str], float]) -> Ranking:
    """The ranking by a function of source and sentence."""
    return rank(triplets, [score(source, sentence) for source, sentence in pairs(triplets)])


def choose(articles: Sequence[Choices], scores: Sequence[Sequence[float]]) -> Chosen:
    """Falke's reranking: of each article the summary with the highest score, and whether it is inconsistent."""
    if not articles or [len(one) for one in scores] != [len(one.summaries) for one in articles]:
        raise EnsueError("Choosing among summaries needs one score for each of them; score every summary.")
    wrong: list[float] = []
    chance: list[float] = []
    for article, given in zip(articles, scores, strict=True):
        if not all(map(math.isfinite, given)):
            raise EnsueError(f"A score of article {article.article} is not a finite number; score it again.")
        faults = [float(not summary.consistent) for summary in article.summaries]
        best = [fault for fault, one in zip(faults, given, strict=True) if one >= max(given) - TIE]
        wrong.append(sum(best) / len(best))
        chance.append(sum(faults) / len(faults))
    names = [article.article for article in articles]
    return Chosen(clustered_interval(wrong, names, bounds=SHARE), sum(chance) / len(chance))


def _ranked(triplet: Triplet, consistent: float, inconsistent: float) -> Ranked:
    if not (math.isfinite(consistent) and math.isfinite(inconsistent)):
        raise EnsueError(f"A score of triplet {triplet.id} is not a finite number; score it again.")
    return Ranked(triplet, consistent, inconsistent, verdict_of(consistent, inconsistent))


def verdict_of(consistent: float, inconsistent: float) -> Verdict:
    """Whether the scores of two sentences rank them right.

    >>> verdict_of(0.5, 0.25), verdict_of(0.5, 0.5)
    ('right', 'tie')
    """
    gap = consistent - inconsistent
    return "tie" if abs(gap) <= TIE else "right" if gap > 0 else "wrong"
