"""Rules that are measured on their own: what a sentence is worth to a rating, and would it stand better elsewhere?"""

from __future__ import annotations

from collections.abc import Sequence

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.coherence.rating import rate_texts, worth_of_each
from ensue.benchmarks.insertion.positions import Removed, requests_of, values_of
from ensue.benchmarks.intruder.rules import BELONGING, INSERTION, REMOVAL, Sentences, Values
from ensue.models.protocols import Rater, Reader, Scorer
from ensue.models.request import Policy
from ensue.scoring.engine import Scored, score
from ensue.text.documents import Document

# Sentences after the inserted one that are scored with and without it, as `ensue run insertion` does.
AFTER = 2

Text = Sequence[str]


def by_rating(
    rater: Rater, texts: Sequence[Text], rules: Sequence[str], context: RunContext
) -> list[Sentences]:
    """Measure what a rater's rules need: ratings of every text without each of its sentences and, for insertion, with
    each at every place."""
    removal = worth_of_each(rater, texts, context)
    whole = rate_texts(rater, texts, context)
    found = [{REMOVAL: [None, *values[1:]]} for values in removal]
    if INSERTION in rules:
        taken = [_taken_out(text) for text in texts]
        every = [
            one.at(place) for each in taken for one in each for place in range(len(one.document.sentences))
        ]
        ratings = iter(rate_texts(rater, every, context))
        for own, each in zip(found, taken, strict=True):
            own[INSERTION] = [
                None,
                *(_firmness(one, [next(ratings) for _ in one.document.sentences]) for one in each),
            ]
    return [
        Sentences(own={rule: own[rule] for rule in rules}, whole=value)
        for own, value in zip(found, whole, strict=True)
    ]


def by_reading(reader: Reader, texts: Sequence[Text]) -> list[Sentences]:
    """Ask a reader what it says of each sentence after the first; the whole text is as good as its least one."""
    return [
        Sentences(own={BELONGING: [None, *values[1:]]}, whole=min(values[1:]))
        for values in reader.read(texts)
    ]


def insertion_by_likelihood(
    scorer: Scorer, texts: Sequence[Text], joiner: str, policy: Policy, context: RunContext
) -> tuple[list[Values], Scored]:
    """Score every sentence after the first at every place of its text."""
    taken = [_taken_out(text) for text in texts]
    requests = [request for each in taken for one in each for request in requests_of(one, joiner, AFTER)]
    scored = score(scorer, requests, policy=policy, journal=context.journal, progress=context.progress)
    logprobs = iter([one.logprob for one in scored.scores])
    values: list[Values] = [
        [None, *(_firmness(one, values_of(one, logprobs, AFTER)) for one in each)] for each in taken
    ]
    return values, scored


def _taken_out(text: Text) -> list[Removed]:
    document = Document("", tuple(text), "")
    return [Removed(document, place) for place in range(1, len(text))]


def _firmness(removed: Removed, values: Sequence[float]) -> float:
    """Return how much better the sentence stands where it stood than at the best other place.

    >>> _firmness(Removed(Document("", ("a", "b", "c"), ""), 1), [1.0, 5.0, 3.0])
    2.0
    """
    right = removed.right()
    others = [value for place, value in enumerate(values) if place not in right]
    return max(values[place] for place in right) - max(others) if others else 0.0
