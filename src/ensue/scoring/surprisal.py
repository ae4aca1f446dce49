"""Surprisal sentence by sentence: where does a text stop following?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.scoring.request import Score


class SentenceSurprisal(NamedTuple):
    """Mean surprisal of a sentence's scored tokens, in nats; None where none was scored."""

    surprisal: float | None
    tokens: int


def sentence_surprisal(sentences: Sequence[str], joiner: str, score: Score) -> list[SentenceSurprisal] | None:
    """Surprisal of each sentence of a joined text; None where the score has no token detail.

    A token belongs to the sentence its last character lies in, so a joiner counts with what follows it.
    """
    if score.token_logprobs is None or score.token_spans is None:
        return None
    ends, position = [], 0
    for sentence in sentences:
        position += len(sentence)
        ends.append(position)
        position += len(joiner)
    sums, counts = [0.0] * len(sentences), [0] * len(sentences)
    current = 0
    for (_, end), logprob in zip(score.token_spans, score.token_logprobs, strict=True):
        while current < len(ends) - 1 and end > ends[current]:
            current += 1
        sums[current] -= logprob
        counts[current] += 1
    return [
        SentenceSurprisal(total / count if count else None, count)
        for total, count in zip(sums, counts, strict=True)
    ]


def profile_version(
    name: str, sentences: list[str], order: list[int], joiner: str, score: Score
) -> dict[str, Any] | None:
    """A text's sentences with their surprisal, as profiles.jsonl has them; None without token detail."""
    found = sentence_surprisal(sentences, joiner, score)
    if found is None:
        return None
    return {
        "name": name,
        "order": order,
        "sentences": sentences,
        "surprisal": [None if s.surprisal is None else round(s.surprisal, 4) for s in found],
        "tokens": [s.tokens for s in found],
    }
