"""Human consistency of a summary, and how far the workers who judged it agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.drawn import ROUNDS, Drawn
from ensue.benchmarks.qags.data import JudgedSentence, JudgedSummary
from ensue.metrics.agreement import alpha_of_coincidences, coincidences
from ensue.stats.ranges import CORRELATION
from ensue.stats.resampling import MadeUp, sum_draws


def majority(sentence: JudgedSentence) -> bool:
    """Whether more than half of the workers found the sentence consistent; half of them is no majority."""
    return 2 * sum(response.consistent for response in sentence.responses) > len(sentence.responses)


def consistency(summary: JudgedSummary) -> float:
    """The share of a summary's sentences that the majority found consistent (§4.5.1)."""
    return sum(map(majority, summary.sentences)) / len(summary.sentences)


def human_consistency(summaries: Sequence[JudgedSummary]) -> NDArray[np.float64]:
    """The consistency of each summary."""
    return np.array([consistency(summary) for summary in summaries], dtype=np.float64)


def ratings(summaries: Sequence[JudgedSummary]) -> tuple[NDArray[np.float64], list[str]]:
    """Every sentence's judgments, 1 for consistent and nan for none, in a column a worker; and its summary's id."""
    responses = [one for summary in summaries for sentence in summary.sentences for one in sentence.responses]
    columns = {worker: place for place, worker in enumerate(dict.fromkeys(one.worker for one in responses))}
    sentences = [(summary.id, sentence) for summary in summaries for sentence in summary.sentences]
    table = np.full((len(sentences), len(columns)), np.nan)
    for place, (_, sentence) in enumerate(sentences):
        for response in sentence.responses:
            table[place, columns[response.worker]] = float(response.consistent)
    return table, [id for id, _ in sentences]


def agreement(summaries: Sequence[JudgedSummary], *, rounds: int = ROUNDS, seed: int = 0) -> Drawn:
    """Krippendorff's alpha of the judgments of sentences, nominal; summaries are resampled whole."""
    table, clusters = ratings(summaries)
    values, pairs = coincidences(table)
    flat = pairs.reshape(len(pairs), -1)
    units = len(set(clusters))
    given = pairs.sum(axis=(0, 1))
    # One made-up summary that was judged at random: its judgments coincide as often as chance has it.
    chance = np.outer(given, given).reshape(1, -1) / given.sum() / units
    made_up = MadeUp(chance, np.ones(1))
    drawn = sum_draws(flat, clusters, made_up=made_up, rounds=rounds, seed=seed)
    value = float(alpha_of_coincidences(pairs.sum(axis=0), values))
    draws = alpha_of_coincidences(drawn.reshape(rounds, *pairs.shape[1:]), values)
    return Drawn(value, draws, len(table), units, CORRELATION)
