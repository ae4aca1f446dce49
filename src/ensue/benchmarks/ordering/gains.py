"""What sentences gain from those that stand before them, by likelihood or by rating; each step of a search is one
batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.coherence.documents import of_steps
from ensue.benchmarks.coherence.neighbours import NOTHING, heads_of
from ensue.benchmarks.coherence.rating import rate_texts
from ensue.benchmarks.ordering.beam import Ask, Order
from ensue.models.protocols import Rater, Scorer
from ensue.models.request import Policy, Request
from ensue.progress import Progress, ignore
from ensue.scoring.engine import score
from ensue.scoring.journal import Journal


class Gains:
    """Answers what a sentence gains: its log-likelihood after those before it less that on its own, in nats.

    Beginnings that hold other sentences can be told apart by that, and by plain log-likelihood they cannot: short,
    likely sentences would come first. Summed over a whole order it is the log-likelihood of the text but for a
    constant, the first sentence counting as on its own.

    Of a sentence only the first `words` may count, and of what stands before it only the last `context` sentences:
    either takes fewer tokens, and neither is the log-likelihood of the text any more.
    """

    def __init__(
        self,
        scorer: Scorer,
        texts: Sequence[Sequence[str]],
        *,
        joiner: str,
        policy: Policy,
        journal: Journal | None = None,
        progress: Progress = ignore,
        words: int | None = None,
        context: int | None = None,
        at_once: bool = False,
    ) -> None:
        self._scorer, self._texts, self._joiner = scorer, texts, joiner
        self._heads, self._context = [heads_of(text, words) for text in texts], context or 0
        self._policy, self._journal, self._progress = policy, journal, progress
        # Each sentence alone, then whole orders at once, or the written ones and a step a sentence after the first.
        self._steps, self._done = 2 if at_once else max(map(len, texts)) + 1, 0
        self.tokens, self.notes = 0, Counter[str]()
        heads = list(dict.fromkeys(head for text in self._heads for head in text))
        alone = self._score([Request(head, NOTHING) for head in heads])
        self._alone = dict(zip(heads, alone, strict=True))

    def __call__(self, asked: Sequence[Ask]) -> list[float]:
        """Return the gain of each; a sentence that opens a text gains nothing."""
        requests = [
            Request(
                self._joiner + self._heads[number][following],
                self._joiner.join(self._texts[number][place] for place in order[-self._context :]),
            )
            for number, order, following in asked
            if order
        ]
        values = iter(self._score(requests) if requests else ())
        return [
            next(values) - self._alone[self._heads[number][following]] if order else 0.0
            for number, order, following in asked
        ]

    def of_orders(self, orders: Sequence[tuple[int, Order]]) -> list[float]:
        """Return the values of whole orders, each of the text of a number."""
        asked = [Ask(number, order[:at], order[at]) for number, order in orders for at in range(len(order))]
        values = iter(self(asked))
        return [sum(next(values) for _ in order) for _, order in orders]

    def _score(self, requests: Sequence[Request]) -> list[float]:
        progress = of_steps(self._progress, self._done, self._steps)
        scored = score(self._scorer, requests, policy=self._policy, journal=self._journal, progress=progress)
        self._done = min(self._done + 1, self._steps - 1)
        self.tokens += scored.tokens
        self.notes.update(scored.notes)
        return [one.logprob for one in scored.scores]


class RatedBeginnings:
    """Answers by how much a beginning's rating rises with the next sentence, so that what a search adds up is the
    rating of the whole beginning; one sentence alone counts nothing."""

    def __init__(
        self, rater: Rater, texts: Sequence[Sequence[str]], context: RunContext, *, at_once: bool = False
    ) -> None:
        self._rater, self._texts, self._context = rater, texts, context
        # Whole orders at once, or the written ones and a step a sentence after the first.
        self._steps, self._done = 1 if at_once else max(map(len, texts)), 0
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
