"""Precision, recall and F1 of what two texts share, and how such scores are put together over references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import fsum
from typing import Any, NamedTuple, TypeVar, cast

Scores = TypeVar("Scores")


class Overlap(NamedTuple):
    """How much of the candidate is in the reference, of the reference in the candidate, and their mean."""

    precision: float
    recall: float
    f1: float


NOTHING = Overlap(0.0, 0.0, 0.0)


def overlap(shared: float, given: float, wanted: float) -> Overlap:
    """The overlap of a candidate of `given` units and a reference of `wanted`, of which `shared` are in both.

    >>> overlap(2, 4, 2)
    Overlap(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """
    precision = shared / given if given else 0.0
    recall = shared / wanted if wanted else 0.0
    return Overlap(precision, recall, harmonic(precision, recall))


def harmonic(precision: float, recall: float) -> float:
    """F1 of precision and recall; 0 where both are.

    >>> harmonic(0.5, 1.0)
    0.6666666666666666
    """
    total = precision + recall
    return 2.0 * precision * recall / total if total else 0.0


def mean(scores: Sequence[Scores]) -> Scores:
    """The mean of every field of scores of one kind: numbers, or named tuples of them, however nested.

    Over the references of a segment it is the other way of §5.5.3; over segments it is a metric's figure.

    >>> mean([Overlap(1.0, 0.0, 0.0), Overlap(0.5, 1.0, 0.5)])
    Overlap(precision=0.75, recall=0.5, f1=0.25)
    """
    _some(scores)
    return cast(Scores, _fold(scores, _mean_numbers))


def best(scores: Sequence[Scores]) -> Scores:
    """The best over references, field by field: of an Overlap the one with the highest F1, of numbers the largest.

    Where two overlaps have one F1, that of higher precision is taken: the order of references never matters.

    >>> best([Overlap(1.0, 0.5, 0.67), Overlap(0.5, 1.0, 0.67), Overlap(0.1, 0.1, 0.1)])
    Overlap(precision=1.0, recall=0.5, f1=0.67)
    """
    _some(scores)
    return cast(Scores, _fold(scores, max))


# How several references make one score, by the name a setting gives it.
OVER_REFERENCES: dict[str, Callable[[Sequence[Any]], Any]] = {"max": best, "mean": mean}


def summarise(scores: Sequence[Scores]) -> dict[str, float]:
    """The mean over segments, flat: `{"rouge1.f1": …}` for named tuples, `{"value": …}` for plain numbers.

    >>> summarise([Overlap(1.0, 0.0, 0.0), Overlap(0.5, 1.0, 0.5)])
    {'precision': 0.75, 'recall': 0.5, 'f1': 0.25}
    """
    return flat(mean(scores))


def flat(score: Any, name: str = "") -> dict[str, float]:
    """A score's numbers under dotted names.

    >>> flat(Overlap(1.0, 0.0, 0.0), "rougeL")
    {'rougeL.precision': 1.0, 'rougeL.recall': 0.0, 'rougeL.f1': 0.0}
    """
    if not hasattr(score, "_fields"):
        return {name or "value": float(score)}
    found: dict[str, float] = {}
    for field, value in zip(score._fields, score, strict=True):
        found |= flat(value, f"{name}.{field}" if name else field)
    return found


def _some(scores: Sequence[Any]) -> None:
    if not len(scores):
        raise ValueError("There is no score to put together: every segment needs a reference.")


def _fold(scores: Sequence[Any], numbers: Callable[[Sequence[float]], float]) -> Any:
    """Apply a function of numbers to each field of named tuples, however nested."""
    first = scores[0]
    if numbers is max and isinstance(first, Overlap):
        return max(scores, key=lambda one: (one.f1, one.precision, one.recall))
    if not hasattr(first, "_fields"):
        return numbers(scores)
    return type(first)(*(_fold(column, numbers) for column in zip(*scores, strict=True)))


def _mean_numbers(values: Sequence[float]) -> float:
    return fsum(values) / len(values)
