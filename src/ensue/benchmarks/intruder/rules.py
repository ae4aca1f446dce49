"""Rules that say how firmly each sentence stands in its text, and thresholds with a known rate of false alarms.

By every rule the lower a value, the less the sentence follows. All of them judge the same sentences, those after the
first. With a model that scores text, most come from the same scores:

- `following`: what it receives and gives, its likeness to those around it and what a reader says of it, as `ensue
  score --profile` does;
- `gain`: what it receives, per token;
- `received`: its log-likelihood after the text before it less that on its own;
- `ratio`: the share of its surprisal on its own that the text before it takes away;
- `given`: the log-likelihood of the first words of the next sentence with it less that without it;
- `likeness`: its mean cosine with the three most like it of those around it, by an encoder;
- `belonging`: what a reader says of it, a model trained to find intruders;
- `surprisal`: its mean log-likelihood in context, which is its surprisal with the sign turned.

Others are measured on their own (`finders.py`):

- `removal`, with a model that rates whole texts: the rating with the sentence less that without it;
- `insertion`, with either, where it is asked for: how well the sentence stands at its place less how well it would at
  the best other place.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ensue.scoring.following import Following
from ensue.scoring.verdict import standings

Values = list[float | None]
# Values are kept, compared and written to so many digits: what differs by rounding alone is the same.
_DIGITS = 6
_FOLDS = 10


def _ratio(sentence: Following) -> float:
    received, logprob = sentence.received or 0.0, sentence.logprob or 0.0
    alone = logprob - received
    return -received / alone if alone else 0.0


_BY_SENTENCE: dict[str, Callable[[Following, float], float | None]] = {
    "gain": lambda sentence, given: sentence.gain,
    "received": lambda sentence, given: sentence.received,
    "ratio": lambda sentence, given: _ratio(sentence),
    "given": lambda sentence, given: given if sentence.given is None else sentence.given,
    "likeness": lambda sentence, given: sentence.likeness,
    "belonging": lambda sentence, given: sentence.belonging,
    "surprisal": lambda sentence, given: (sentence.logprob or 0.0) / max(1, sentence.tokens),
}
RULES = ("following", *_BY_SENTENCE)
REMOVAL, INSERTION, BELONGING = "removal", "insertion", "belonging"
# What a model that rates texts may be judged by.
RATERS_RULES = (REMOVAL, INSERTION)
EVERY_RULE = (*RULES, *RATERS_RULES)


@dataclass(frozen=True)
class Sentences:
    """What is known of a text's sentences: how each follows, the values of rules that are measured on their own, and
    how good the model finds the text as a whole."""

    following: Sequence[Following] = ()
    own: Mapping[str, Values] = field(default_factory=dict)
    whole: float | None = None


def values_of(sentences: Sentences, rule: str, given: float) -> Values:
    """Return how firmly each sentence stands by a rule; None for the first, which nothing precedes.

    `given` stands in for what a last sentence gives, which nobody can measure.
    """
    if rule in sentences.own:
        return rounded(sentences.own[rule])
    if rule == "following":
        return rounded(standings(sentences.following, given))
    by = _BY_SENTENCE[rule]
    return rounded([None if one.received is None else by(one, given) for one in sentences.following])


def rounded(values: Values) -> Values:
    """Return values to as many digits as are compared."""
    return [None if one is None else round(one, _DIGITS) for one in values]


def least_of(values: Values) -> tuple[float, int]:
    """Return the least value and its place, the first of equal ones.

    >>> least_of([None, 2.0, -1.0, -1.0])
    (-1.0, 2)
    """
    return min((value, place) for place, value in enumerate(values) if value is not None)


def rank_of(values: Values, places: Sequence[int]) -> int:
    """Return at which rank the first of the places comes, the least value first; others that tie rank before it.

    >>> rank_of([None, 2.0, -1.0, 3.0], [2]), rank_of([None, 1.0, 1.0, 0.0], [1]), rank_of([None, 1.0, 1.0], [1, 2])
    (1, 3, 1)
    """
    best = min((value for place in places if (value := values[place]) is not None), default=math.inf)
    others = [value for place, value in enumerate(values) if value is not None and place not in places]
    return 1 + sum(value <= best for value in others)


def flagged(values: Values, threshold: float) -> int | None:
    """Return the place of the least value where it is below the threshold."""
    least, place = least_of(values)
    return place if least < threshold else None


class Fitted(NamedTuple):
    """What was learnt from untouched documents: what stands in for what a last sentence gives, a threshold a rule."""

    given: float
    thresholds: Mapping[str, float]
    documents: int

    def enough(self, rate: float) -> bool:
        """Say whether there were enough of them for a rate as low as this."""
        return (self.documents + 1) * rate >= 1.0 - 1e-9


def fit(controls: Sequence[Sentences], rules: Sequence[str], rate: float) -> Fitted:
    """Fit thresholds below which the least value of an untouched document lies with a chance of `rate`."""
    later = [one for sentences in controls for one in sentences.following[1:]]
    passed = [one.given for one in later if one.given is not None]
    given = math.fsum(passed) / max(1, len(passed))
    thresholds = {}
    for rule in rules:
        least = [least_of(values_of(sentences, rule, given))[0] for sentences in controls]
        # Of n values that are like a new one, it is below the k-th with a chance of k / (n + 1).
        thresholds[rule] = float(np.quantile(least, rate, method="weibull"))
    return Fitted(given, thresholds, len(controls))


def crossfit(
    controls: Mapping[str, Sentences], rules: Sequence[str], rate: float, seed: int
) -> dict[str, Fitted]:
    """Return for each document what is fitted on documents of other folds than its own."""
    names = sorted(controls, key=lambda name: _digest(seed, name))
    folds = min(_FOLDS, len(names))
    found: dict[str, Fitted] = {}
    for fold in range(folds):
        inside = names[fold::folds]
        outside = [controls[name] for place, name in enumerate(names) if place % folds != fold]
        found |= dict.fromkeys(inside, fit(outside, rules, rate))
    return found


def _digest(seed: int, name: str) -> bytes:
    return hashlib.sha256(f"{seed}\0fold\0{name}".encode("utf-8", "surrogatepass")).digest()
