"""From answers to a summary's score: how alike both texts' answers are, and the mean over its questions.

Two answers are alike by shared words (F1), by exact match, or by the cosine of their vectors. As in SQuAD 2.0 and in
the authors' code, "no answer" is an answer like another: two of them agree, and one of them agrees with nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ensue.benchmarks.qags.pipeline import Examined
from ensue.metrics.answers import exact_match, normalised, token_f1
from ensue.models.protocols import Encoder

SIMILARITIES = ("f1", "exact", "embedding")
NOTHING_KEPT = "summaries none of whose questions passed the filters"


def f1(given: str, other: str) -> float:
    """Return token F1; where normalising leaves nothing of one, 1 if it leaves nothing of the other either.

    >>> f1("the old mill", "mill"), f1("", ""), f1("", "mill")
    (0.6666666666666666, 1.0, 0.0)
    """
    if not normalised(given) or not normalised(other):
        return exact_match(given, other)
    return token_f1(given, other)


def by_vectors(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the cosine of both answers' vectors, those below zero counted as 0; each answer is encoded once.

    No answer has no vector; equal answers are 1 whatever the encoder.
    """
    texts = list(dict.fromkeys(text for pair in pairs if all(pair) for text in pair))
    known: Mapping[str, np.ndarray] = {}
    if texts:
        vectors = np.asarray(encoder.encode(texts), dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        known = dict(zip(texts, vectors / np.where(lengths > 0.0, lengths, 1.0), strict=True))
    return [_cosine(known, given, other) for given, other in pairs]


def similarities(name: str, pairs: Sequence[tuple[str, str]], encoder: Encoder | None = None) -> list[float]:
    """Return the similarity of each pair by name; `embedding` needs an encoder."""
    if name == "embedding":
        if encoder is None:
            raise ValueError("Embedding similarity needs an encoder.")
        return by_vectors(encoder, pairs)
    measure: Callable[[str, str], float] = {"f1": f1, "exact": exact_match}[name]
    return [measure(given, other) for given, other in pairs]


def _cosine(known: Mapping[str, np.ndarray], given: str, other: str) -> float:
    if normalised(given) == normalised(other):
        return 1.0
    if not given or not other:
        return 0.0
    return float(np.clip(known[given] @ known[other], 0.0, 1.0))


class SummaryScore(NamedTuple):
    """A summary's score and the similarity of each question it is the mean of; 0 where `trouble` says why."""

    score: float
    similarities: tuple[float, ...]
    trouble: str = ""


class QuestionRow(NamedTuple):
    """One question: what was asked about, what both texts answer, how alike that is.

    `padded` says that the question did not pass the filters and only fills up their number.
    """

    question: str
    expected: str
    by_summary: str
    by_source: str
    similarity: float
    log_probability: float
    start: int
    end: int
    padded: bool


def scored(
    examined: Sequence[Examined], which: int = 0, similarity: str = "f1", encoder: Encoder | None = None
) -> list[SummaryScore]:
    """Score every summary by one of its selections.

    A summary without a question has nothing to be checked by. It scores 0, the least there is, and says so: left out,
    it would make a metric look better on exactly the summaries it cannot read.
    """
    answers = [one.answers(one.selections[which].places) if one.selections else [] for one in examined]
    flat = iter(similarities(similarity, [pair for each in answers for pair in each], encoder))
    found = []
    for one, pairs in zip(examined, answers, strict=True):
        values = tuple(next(flat) for _ in pairs)
        if values:
            found.append(SummaryScore(sum(values) / len(values), values))
        else:
            found.append(SummaryScore(0.0, (), one.trouble or NOTHING_KEPT))
    return found


def question_rows(found: Examined, result: SummaryScore) -> tuple[QuestionRow, ...]:
    """Return each question of the first selection once, those that fill up last."""
    selection = found.selections[0]
    padded = set(selection.places[len(selection.places) - selection.padded :])
    alike = dict(zip(selection.places, result.similarities, strict=True))
    rows = []
    for place, similarity in alike.items():
        proposal, on_summary, on_source = (
            found.proposals[place],
            found.on_summary[place],
            found.on_source[place],
        )
        # What the summary answers is what is in doubt; where it has no answer, what was asked about.
        span = on_summary if on_summary.text else proposal.expected
        rows.append(
            QuestionRow(
                proposal.question,
                proposal.expected.text,
                on_summary.text,
                "" if on_source is None else on_source.text,
                similarity,
                proposal.score,
                span.start,
                span.end,
                place in padded,
            )
        )
    return tuple(rows)
