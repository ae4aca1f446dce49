"""Surprisal profiles of scored texts, in the form the report draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ensue.errors import EnsueError
from ensue.models.request import Score
from ensue.runs.score import Text
from ensue.scoring.surprisal import ends_in, joined_ends, profile_version
from ensue.text.sentences import split_sentences


def check_whole(texts: Sequence[Text]) -> None:
    """Refuse what has no profile before time is spent on scores."""
    for text in texts:
        if text.request.context:
            raise EnsueError(
                f"{text.id} is a context and a continuation; a profile needs whole texts, so leave such rows out or "
                f"score them without --profile."
            )


def text_profiles(texts: Sequence[Text], joiner: str, scores: Sequence[Score]) -> list[dict[str, Any]]:
    """One profile per text: its sentences and how surprising each is, in the text as it was scored."""
    rows = []
    for text, score in zip(texts, scores, strict=True):
        whole = text.request.continuation
        sentences = list(text.sentences) or split_sentences(whole)
        ends = joined_ends(sentences, joiner) if text.sentences else ends_in(whole, sentences)
        found = profile_version("text", sentences, list(range(len(sentences))), ends, score)
        if found is None:
            raise EnsueError(
                f"{text.id} has no profile: its tokens were scored more than once (use --set window=strided) "
                f"or the model does not say where they lie."
            )
        rows.append({"document": text.id, "domain": "", "versions": [found]})
    return rows
