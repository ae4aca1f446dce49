"""Metrics held against people's ratings of summaries: table 5.6's correlations and table 5.7's mean and maximum.

What differs from the paper. Its model-only correlations are all near zero and partly negative (ROUGE-1 -7.4,
ROUGE-2 -7.8, ROUGE-L -3.2). From the published texts and ratings they are 27.6, 28.8 and 31.9, and their intervals
leave zero out: on these 200 summaries ROUGE does tell better ones from worse. Neither the mean over references, nor
the first alone, nor leaving stems out, nor another property, nor Spearman's or Kendall's correlation, nor stories in
another order, nor the two systems exchanged gives the printed numbers. The other columns are nearer: human-only 2.7,
6.0, 1.0 for 6.8, 5.2, 14.0 (none told from zero), and all 57.6, 36.8, 40.5 for 63.1, 42.8, 47.8.

Table 5.7 is of BART+DPR's 180 summaries of the test split, of which 100 are published: ROUGE-1 37.0 and 41.3 where
37.9 and 41.5 are printed, ROUGE-2 8.8 and 11.4 for 8.7 and 11.4, ROUGE-L 18.9 and 21.1 for 18.8 and 21.0. The printed
difference for ROUGE-2 is 2.1; that of its own columns is 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.drawn import Drawn
from ensue.benchmarks.squality.data import Story
from ensue.benchmarks.squality.human_eval import HUMAN, Rated
from ensue.errors import EnsueError
from ensue.metrics.correlation import kendall, pearson, spearman
from ensue.stats.correlation import correlation_draws, kendall_draws
from ensue.stats.ranges import CORRELATION

Kind = Literal["pearson", "spearman", "kendall"]
Subset = Literal["model", "human", "all"]
KINDS: tuple[Kind, ...] = ("pearson", "spearman", "kendall")
SUBSETS: tuple[Subset, ...] = ("model", "human", "all")

_CORRELATIONS: Mapping[Kind, Callable[[Sequence[float], Sequence[float]], float]] = {
    "pearson": pearson,
    "spearman": spearman,
    "kendall": kendall,
}


class Correlation(NamedTuple):
    """A metric's correlation with a rated property over a subset of the summaries.

    `value` and the interval are None where there is none to be had: a constant metric, or too few systems.
    """

    metric: str
    subset: Subset
    kind: Kind
    value: float | None
    low: float | None
    high: float | None
    n: int

    @property
    def told_from_zero(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0.0 <= self.high


class MeanAndMax(NamedTuple):
    """A line of table 5.7: a metric by one reference at a time on average, and by the best of them."""

    mean: float
    max: float

    @property
    def difference(self) -> float:
        return self.max - self.mean


def references_of(rated: Sequence[Rated], stories: Sequence[Story]) -> list[tuple[str, ...]]:
    """Each summary's references: all of its question's, without itself where a person wrote it."""
    questions = {
        f"{story.id}/{question.number}": question.references
        for story in stories
        for question in story.questions
    }
    found = []
    for one in rated:
        if one.example not in questions:
            raise EnsueError(
                f"Question {one.question} of story {one.story} was rated but is not among the stories; "
                "read the test split of version 1."
            )
        references = questions[one.example]
        if one.system == HUMAN:
            left = tuple(text for text in references if _bare(text) != _bare(one.text))
            if len(left) == len(references):
                raise EnsueError(
                    f"The human summary of question {one.question}, story {one.story} is none of its references."
                )
            references = left
        found.append(references)
    return found


def summary_correlations(
    rated: Sequence[Rated],
    metrics: Mapping[str, Sequence[float]],
    *,
    rated_property: str = "overall",
    kind: Kind = "pearson",
    seed: int = 0,
) -> list[Correlation]:
    """Table 5.6: metrics of single summaries against their mean ratings, intervals by resampling whole stories."""
    ratings = np.array([one.rating(rated_property) for one in rated])
    rows = []
    for name, given in metrics.items():
        values = _values(name, given, len(rated))
        for subset in SUBSETS:
            places = _places(rated, subset)
            x, y = values[places], ratings[places]
            clusters = [rated[place].story for place in places]
            value = _correlation(kind, x, y)
            low = high = None
            if value is not None:
                draws = _draws(kind, x, y, clusters, seed)
                low, high = Drawn(value, draws, len(places), len(set(clusters)), CORRELATION).interval()
            rows.append(Correlation(name, subset, kind, value, low, high, len(places)))
    return rows


def system_correlations(
    rated: Sequence[Rated],
    metrics: Mapping[str, Sequence[float]],
    *,
    rated_property: str = "overall",
    kind: Kind = "pearson",
) -> list[Correlation]:
    """The same of systems' means. With two models and people there is little to learn from it, and no interval."""
    ratings = np.array([one.rating(rated_property) for one in rated])
    rows = []
    for name, given in metrics.items():
        values = _values(name, given, len(rated))
        for subset in SUBSETS:
            groups: dict[str, list[int]] = {}
            for place in _places(rated, subset):
                groups.setdefault(rated[place].system, []).append(place)
            x = np.array([values[places].mean() for places in groups.values()])
            y = np.array([ratings[places].mean() for places in groups.values()])
            value = _correlation(kind, x, y)
            rows.append(Correlation(name, subset, kind, value, None, None, len(groups)))
    return rows


def mean_and_max(by_reference: Sequence[Sequence[float]]) -> MeanAndMax:
    """Table 5.7 from a metric of each summary with each of its references.

    >>> mean_and_max([[0.25, 0.75], [0.5, 0.5]])
    MeanAndMax(mean=0.5, max=0.625)
    """
    if not by_reference or not all(len(row) for row in by_reference):
        raise EnsueError("Mean and maximum over references need summaries, each with at least one reference.")
    mean = float(np.mean([np.mean(row) for row in by_reference]))
    return MeanAndMax(mean, float(np.mean([max(row) for row in by_reference])))


def _correlation(kind: Kind, x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None:
    if len(x) < 2:
        return None
    value = _CORRELATIONS[kind](x.tolist(), y.tolist())
    return None if np.isnan(value) else value


def _draws(
    kind: Kind, x: NDArray[np.float64], y: NDArray[np.float64], clusters: Sequence[str], seed: int
) -> NDArray[np.float64]:
    if kind == "kendall":
        return kendall_draws(x, y, clusters, seed=seed)
    draws = correlation_draws(x, y, clusters, seed=seed)
    return draws.pearson if kind == "pearson" else draws.spearman


def _places(rated: Sequence[Rated], subset: Subset) -> list[int]:
    wanted = {"model": (False,), "human": (True,), "all": (False, True)}[subset]
    return [place for place, one in enumerate(rated) if (one.system == HUMAN) in wanted]


def _values(name: str, given: Sequence[float], count: int) -> NDArray[np.float64]:
    values = np.asarray(given, dtype=np.float64)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise EnsueError(f"The metric {name!r} needs one number for each of the {count} rated summaries.")
    return values


def _bare(text: str) -> str:
    return " ".join(text.split())
