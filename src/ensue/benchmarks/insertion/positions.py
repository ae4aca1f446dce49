"""How well a sentence that was taken out of a document stands at each of its positions.

With a scorer it is the log-likelihood of the text with the sentence there, less that of the text without it: which
position is best does not depend on what is taken off. What stands further after the sentence hardly hears of it, so
only so many sentences after it are scored with and without it. Each is asked for after all that stands before it,
and what stands before one position begins what stands before the next: the engine reads a document's beginnings once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ensue.benchmarks.coherence.neighbours import Neighbours
from ensue.metrics.preference import TIE
from ensue.models.request import Request
from ensue.text.documents import Document


class Removed(NamedTuple):
    """A document without one of its sentences, and where that stood; there are as many positions as sentences."""

    document: Document
    place: int

    @property
    def sentence(self) -> str:
        return self.document.sentences[self.place]

    @property
    def rest(self) -> tuple[str, ...]:
        return self.document.sentences[: self.place] + self.document.sentences[self.place + 1 :]

    @property
    def id(self) -> str:
        return f"{self.document.id}#{self.place + 1}"

    def at(self, position: int) -> tuple[str, ...]:
        """Return the text with the sentence at a position."""
        rest = self.rest
        return (*rest[:position], self.sentence, *rest[position:])

    def right(self) -> list[int]:
        """Return the positions that give the document back: several where a neighbour reads the same."""
        every = range(len(self.document.sentences))
        return [position for position in every if self.at(position) == self.document.sentences]


def requests_of(removed: Removed, joiner: str, after: int | None) -> list[Request]:
    """Return what is asked of a scorer: each position's text, or what differs in it from the text without."""
    rest, count = removed.rest, len(removed.document.sentences)
    if after is None:
        return [Request(joiner.join(removed.at(at))) for at in range(count)]
    requests = []
    for at in range(count):
        before, following = joiner.join(rest[:at]), rest[at : at + after]
        between = joiner if at else ""
        requests.append(Request(between + joiner.join([removed.sentence, *following]), before))
        if following:
            requests.append(Request(between + joiner.join(following), before))
    return requests


def values_of(removed: Removed, logprobs: Iterator[float], after: int | None) -> list[float]:
    """Return how well the sentence stands at each position, from the answers to those requests in their order."""
    count = len(removed.document.sentences)
    if after is None:
        return [next(logprobs) for _ in range(count)]
    values = []
    for at in range(count):
        value = next(logprobs)
        # Nothing follows the last position.
        if after and at < count - 1:
            value -= next(logprobs)
        values.append(value)
    return values


def values_between(removed: Removed, found: Neighbours) -> list[float]:
    """Return how well the sentence stands between those on either side, less how well they stand side by side."""
    follows, place, count = found.follows, removed.place, len(removed.document.sentences)
    others = [number for number in range(count) if number != place]
    values = []
    for at in range(count):
        value = float(follows[others[at - 1], place] if at else found.opens[place])
        if at < len(others):
            value += float(follows[place, others[at]])
            value -= float(follows[others[at - 1], others[at]] if at else found.opens[others[0]])
        values.append(value)
    return values


class Judged(NamedTuple):
    """What is made of the values of a removed sentence: the best positions, and how right and how far they are."""

    best: list[int]
    accuracy: float
    distance: float


def judge(values: Sequence[float], right: Sequence[int]) -> Judged:
    """Judge the best position; where several are as good, as if one of them were drawn.

    >>> judge([-3.0, -1.0, -2.0], right=[2]), judge([0.0, 0.0], right=[0])
    (Judged(best=[1], accuracy=0.0, distance=1.0), Judged(best=[0, 1], accuracy=0.5, distance=0.5))
    """
    highest = max(values)
    best = [at for at, value in enumerate(values) if value >= highest - TIE]
    hits = [at in right for at in best]
    far = [min(abs(at - one) for one in right) for at in best]
    return Judged(best, sum(hits) / len(best), sum(far) / len(best))
