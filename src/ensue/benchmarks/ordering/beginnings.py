"""Beginnings of orders as a model rates them; those of as many sentences can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.coherence.documents import of_steps
from ensue.benchmarks.coherence.rating import rate_texts
from ensue.benchmarks.ordering.beam import Ask, Order
from ensue.models.protocols import Rater


class RatedBeginnings:
    """Answers by how much a beginning's rating rises with the next sentence, so that what a search adds up is the
    rating of the whole beginning; one sentence alone counts nothing."""

    def __init__(self, rater: Rater, texts: Sequence[Sequence[str]], context: RunContext) -> None:
        self._rater, self._texts, self._context = rater, texts, context
        # The written orders, and a step a sentence after the first.
        self._steps, self._done = max(map(len, texts)), 0
        self.tokens, self.notes = 0, Counter[str]()

    def __call__(self, asked: Sequence[Ask]) -> list[float]:
        """Return the rise of each."""
        # Beginnings were rated in the step before.
        before = [(number, order) for number, order, _ in asked]
        grown = [(number, (*order, following)) for number, order, following in asked]
        values = self.of_orders([*before, *grown])
        return [after - one for one, after in zip(values, values[len(asked) :], strict=False)]

    def of_orders(self, orders: Sequence[tuple[int, Order]]) -> list[float]:
        """Return the ratings of orders, or of their beginnings, each of the text of a number."""
        texts = [
            [self._texts[number][place] for place in order] for number, order in orders if len(order) > 1
        ]
        if not texts:
            return [0.0 for _ in orders]
        progress = of_steps(self._context.progress, self._done, self._steps)
        self._done = min(self._done + 1, self._steps - 1)
        ratings = iter(rate_texts(self._rater, texts, replace(self._context, progress=progress)))
        return [next(ratings) if len(order) > 1 else 0.0 for _, order in orders]
