"""From questions and answers to a summary's score: the mean similarity of both texts' answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensue.benchmarks.qags.pipeline import Examined
from ensue.benchmarks.qags.similarity import similarities
from ensue.models.protocols import Encoder

NOTHING_KEPT = "summaries none of whose questions passed the filters"


class Scored(NamedTuple):
    """A summary's score and the similarity of each question it is the mean of; 0 where `trouble` says why."""

    score: float
    similarities: tuple[float, ...]
    trouble: str = ""


def scored(
    examined: Sequence[Examined], which: int = 0, similarity: str = "f1", encoder: Encoder | None = None
) -> list[Scored]:
    """Every summary's score by one of its selections.

    A summary without a question has nothing to be checked by. It scores 0, the least there is, and says so: left out,
    it would make a metric look better on exactly the summaries it cannot read.
    """
    answers = [one.answers(one.selections[which].places) if one.selections else [] for one in examined]
    flat = iter(similarities(similarity, [pair for each in answers for pair in each], encoder))
    found = []
    for one, pairs in zip(examined, answers, strict=True):
        values = tuple(next(flat) for _ in pairs)
        if values:
            found.append(Scored(sum(values) / len(values), values))
        else:
            found.append(Scored(0.0, (), one.trouble or NOTHING_KEPT))
    return found
