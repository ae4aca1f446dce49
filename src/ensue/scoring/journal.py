"""The record of finished scores, from which a killed run goes on where it was."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from ensue.models.request import Score
from ensue.records import Codec, Records


def _to_json(score: Score) -> list[Any]:
    # repr of a float is exact: what is read back is what was computed, to the last bit.
    record: list[Any] = [score.logprob, score.tokens, score.logprob_per_token]
    if score.token_logprobs is not None:
        record += [list(score.token_logprobs), score.token_spans]
    return record


def _from_json(record: list[Any]) -> Score:
    logprob, tokens, mean, *detail = record
    if not detail:
        return Score(float(logprob), int(tokens), float(mean))
    logprobs, spans = detail
    pairs = None if spans is None else tuple((int(a), int(b)) for a, b in spans)
    return Score(float(logprob), int(tokens), float(mean), tuple(map(float, logprobs)), pairs)


_SCORES = Codec("scores", _to_json, _from_json)


class Journal:
    """Scores by key, in a file of their own or among the records of a run.

    A key is a digest of everything that changes a score (model identity, policy, tokens), so a record can
    only ever answer the question it was made for.
    """

    def __init__(self, kept: Path | Records) -> None:
        self._records = kept if isinstance(kept, Records) else Records(kept)

    def __len__(self) -> int:
        return self._records.count(_SCORES)

    def get(self, key: str, *, detail: bool) -> Score | None:
        """Return the score under a key; one without token detail does not answer a request for it."""
        score = self._records.get(_SCORES, key)
        if score is not None and detail and score.token_logprobs is None and score.tokens:
            return None
        return score

    def add(self, scores: Iterable[tuple[str, Score]]) -> None:
        """Append a batch of scores and hand it to the operating system."""
        self._records.add(_SCORES, scores)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._records.close()
