"""Scores texts without a benchmark: from Python, or a file of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ensue.benchmarks.base import Setting
from ensue.benchmarks.settings import POLICY_SETTINGS, one_of, optional, text
from ensue.errors import EnsueError
from ensue.models.names import load_model
from ensue.models.protocols import Model, Scorer, require
from ensue.scoring.engine import Progress, Scored
from ensue.scoring.engine import score as score_requests
from ensue.scoring.journal import Journal
from ensue.scoring.request import Policy, Request
from ensue.text.documents import read_documents
from ensue.text.readers import JSON_LINES, json_objects

SETTINGS: dict[str, Setting] = {
    **POLICY_SETTINGS,
    "overflow": Setting(
        "refuse", "a context too long for the model: refuse or truncate", one_of("refuse", "truncate")
    ),
    "joiner": Setting(" ", "what stands between sentences", text),
    "encoding": Setting("utf-8", "encoding of files that are not UTF-8", text),
    "text_column": Setting(None, "column that holds the text", optional(text)),
}


@dataclass(frozen=True)
class Text:
    """A text to score, with the name its score goes by."""

    id: str
    request: Request
    sentences: tuple[str, ...] = ()


def score(
    texts: Sequence[str | tuple[str, str]],
    *,
    model: str | Model = "smollm2",
    policy: Policy | None = None,
    journal: str | Path | None = None,
    detail: bool = False,
    progress: Progress | None = None,
    **model_options: Any,
) -> Scored:
    """Log-likelihoods of texts, or of continuations given as (context, continuation)."""
    requests = [
        Request(text, detail=detail) if isinstance(text, str) else Request(text[1], text[0], detail)
        for text in texts
    ]
    loaded = load_model(model, **model_options) if isinstance(model, str) else model
    scorer = require(loaded, Scorer, "Scoring")
    if journal is None:
        return score_requests(scorer, requests, policy=policy, progress=progress)
    with Journal(Path(journal)) as kept:
        return score_requests(scorer, requests, policy=policy, journal=kept, progress=progress)


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """The policy that settings describe."""
    return Policy(
        window=settings["window"],
        overflow=settings["overflow"],
        bos=settings["bos"],
        max_length=settings["max_length"],
        masked=settings["masked"],
    )


def read_texts(
    source: str, settings: Mapping[str, Any], *, limit: int | None, by_sentence: bool = False
) -> list[Text]:
    """The texts of a file: JSON lines with `text`, `sentences` or `context` and `continuation`, or plain text.

    A text is scored as it stands; `by_sentence` splits it and joins its sentences, as a profile needs.
    """
    path, encoding, joiner = Path(source), settings["encoding"], settings["joiner"]
    if path.suffix in JSON_LINES and path.is_file() and _has_contexts(path, encoding):
        return list(islice(_pairs(path, encoding), limit))
    documents = read_documents(source, limit=limit, text_column=settings["text_column"], encoding=encoding)
    return [
        Text(
            d.id,
            Request(joiner.join(d.sentences) if by_sentence or d.text is None else d.text),
            d.sentences,
        )
        for d in documents.items
    ]


def _has_contexts(path: Path, encoding: str) -> bool:
    return any("continuation" in row for _, row in islice(json_objects(path, encoding), 1))


def _pairs(path: Path, encoding: str) -> Iterator[Text]:
    for place, row in json_objects(path, encoding):
        context, continuation = row.get("context", ""), row.get("continuation")
        if not isinstance(context, str) or not isinstance(continuation, str) or not continuation:
            raise EnsueError(f"{place} needs a `continuation` (and may have a `context`), both text.")
        name = row.get("id", place.rpartition(" ")[2])
        yield Text(name if isinstance(name, str) else json.dumps(name), Request(continuation, context))
