"""Surprisal sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from ensue.models.request import Score


class SentenceSurprisal(NamedTuple):
    """Mean surprisal of a sentence's scored tokens, in nats; None where none was scored."""

    surprisal: float | None
    tokens: int


def joined_ends(sentences: Sequence[str], joiner: str) -> list[int]:
    """Return where each sentence ends in the text they make with a joiner between them.

    >>> joined_ends(["One.", "Two."], " ")
    [4, 9]
    """
    begins = accumulate(len(sentence) + len(joiner) for sentence in sentences)
    return [begin - len(joiner) for begin in begins]


def ends_in(text: str, sentences: Sequence[str]) -> list[int]:
    """Return where each sentence ends in the text that was split into them, whatever white space changed.

    >>> ends_in("One  two.\\n\\nThree.\\n", ["One two.", "Three."])
    [9, 17]
    """
    visible = [place for place, char in enumerate(text) if not char.isspace()]
    counts = accumulate(sum(not char.isspace() for char in sentence) for sentence in sentences)
    return [visible[count - 1] + 1 for count in counts]


def sentence_surprisal(ends: Sequence[int], score: Score) -> list[SentenceSurprisal] | None:
    """Return surprisal of the sentences that end at those characters; None where the score has no token detail.

    A token belongs to the sentence its last character lies in, so what stands between two counts with the second.
    """
    if score.token_logprobs is None or score.token_spans is None:
        return None
    sums, counts = [0.0] * len(ends), [0] * len(ends)
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
    name: str, sentences: list[str], order: list[int], ends: Sequence[int], score: Score
) -> dict[str, Any] | None:
    """Return a text's sentences with their surprisal, as profiles.jsonl has them; None without token detail."""
    found = sentence_surprisal(ends, score)
    if found is None:
        return None
    return {
        "name": name,
        "order": order,
        "sentences": sentences,
        "surprisal": [None if s.surprisal is None else round(s.surprisal, 4) for s in found],
        "tokens": [s.tokens for s in found],
    }
