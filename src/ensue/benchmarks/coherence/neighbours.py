"""How well each sentence of a document would follow each other one directly, by a scorer, a rater or an encoder.

A scorer says how much likelier a sentence is after the other than on its own (pointwise mutual information, in nats),
a rater how coherent the two are as a text; an encoder only how alike they are (their cosine), whichever comes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.base import RunContext
from ensue.benchmarks.coherence.documents import policy_of
from ensue.benchmarks.coherence.rating import rate_texts, rater_of
from ensue.models.protocols import Encoder, Model, Rater, Scorer, require
from ensue.models.request import Policy, Request
from ensue.progress import Progress, ignore
from ensue.scoring.engine import score
from ensue.scoring.following import head_of
from ensue.scoring.journal import Journal

Matrix = npt.NDArray[np.float64]

# What stands before a sentence that is read on its own: the end of a paragraph that is not there.
NOTHING = "\n\n"


class Neighbours(NamedTuple):
    """Of one document: `follows[i, j]` is how well sentence j follows sentence i, `opens[i]` how well i opens it."""

    follows: Matrix
    opens: Matrix


class Found(NamedTuple):
    """The neighbours of every document, and what was done to find them."""

    documents: list[Neighbours]
    tokens: int
    notes: Counter[str]


def find_neighbours(
    model: Model, texts: Sequence[Sequence[str]], settings: Mapping[str, Any], context: RunContext, why: str
) -> Found:
    """Find the neighbours in every text with a scorer or, where the model is none, with a rater or an encoder."""
    rater = rater_of(model, settings, why)
    if rater is not None:
        return by_rating(rater, texts, context)
    if not isinstance(model, Scorer) and isinstance(model, Encoder):
        return by_likeness(model, texts)
    return by_likelihood(
        require(model, Scorer, why),
        texts,
        joiner=settings["joiner"],
        policy=policy_of(settings),
        journal=context.journal,
        progress=context.progress,
        words=settings.get("words"),
    )


def by_likelihood(
    scorer: Scorer,
    texts: Sequence[Sequence[str]],
    *,
    joiner: str,
    policy: Policy,
    journal: Journal | None = None,
    progress: Progress = ignore,
    words: int | None = None,
) -> Found:
    """Score every ordered pair of sentences of every text, or the first words of the second one after the first;
    nothing is said of how well one opens a text."""
    requests: list[Request] = []
    for sentences in texts:
        heads = heads_of(sentences, words)
        requests += [Request(head, NOTHING) for head in heads]
        requests += [
            Request(joiner + heads[j], sentences[i]) for i, j in permutations(range(len(sentences)), 2)
        ]
    scored = score(scorer, requests, policy=policy, journal=journal, progress=progress)
    values = iter(one.logprob for one in scored.scores)
    found = []
    for sentences in texts:
        count = len(sentences)
        alone = np.asarray([next(values) for _ in sentences])
        follows = np.zeros((count, count))
        for i, j in permutations(range(count), 2):
            follows[i, j] = next(values) - alone[j]
        found.append(Neighbours(follows, np.zeros(count)))
    return Found(found, scored.tokens, scored.notes)


def heads_of(sentences: Sequence[str], words: int | None) -> list[str]:
    """Return the first words of every sentence, or the whole of it."""
    return list(sentences) if words is None else [head_of(sentence, words) for sentence in sentences]


def by_rating(rater: Rater, texts: Sequence[Sequence[str]], context: RunContext) -> Found:
    """Rate every ordered pair of sentences of every text; nothing is said of how well one opens a text."""
    pairs = [[one[i], one[j]] for one in texts for i, j in permutations(range(len(one)), 2)]
    ratings = iter(rate_texts(rater, pairs, context))
    found = []
    for sentences in texts:
        follows = np.zeros((len(sentences), len(sentences)))
        for i, j in permutations(range(len(sentences)), 2):
            follows[i, j] = next(ratings)
        found.append(Neighbours(follows, np.zeros(len(sentences))))
    return Found(found, 0, Counter())


def by_likeness(encoder: Encoder, texts: Sequence[Sequence[str]]) -> Found:
    """Take cosines of all sentences of every text; the one that is most like all the others opens it best."""
    distinct = list(dict.fromkeys(sentence for sentences in texts for sentence in sentences))
    places = {sentence: place for place, sentence in enumerate(distinct)}
    vectors = np.asarray(encoder.encode(distinct), dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
    found = []
    for sentences in texts:
        own = vectors[[places[sentence] for sentence in sentences]]
        follows = own @ own.T
        np.fill_diagonal(follows, 0.0)
        found.append(Neighbours(follows, follows.sum(axis=1) / max(1, len(sentences) - 1)))
    return Found(found, 0, Counter())
