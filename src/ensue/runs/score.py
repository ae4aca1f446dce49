"""Score texts without a benchmark, from Python or a file of them, and give each its surprisal profile."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ensue.backends.names import load_model
from ensue.benchmarks.base import Setting
from ensue.benchmarks.settings import POLICY_SETTINGS, one_of, optional, text
from ensue.errors import EnsueError
from ensue.jsonl import JSON_LINES, parse_line
from ensue.models.protocols import Model, Scorer, require
from ensue.models.request import Policy, Request, Score, Window
from ensue.progress import Progress
from ensue.runs.run import refuse_systems
from ensue.scoring.engine import Scored
from ensue.scoring.engine import score as score_requests
from ensue.scoring.journal import Journal
from ensue.scoring.surprisal import ends_in, joined_ends, profile_version
from ensue.text.documents import read_documents
from ensue.text.io.rows import json_objects, row_from_columns
from ensue.text.sentences import split_sentences

# Of a text longer than the model every token is scored once, so that the total is a log-likelihood.
_WINDOW: Window = "strided"
STANDARD_INPUT = "-"
SETTINGS: dict[str, Setting] = {
    **POLICY_SETTINGS,
    "window": replace(POLICY_SETTINGS["window"], default=_WINDOW),
    "overflow": Setting(
        "refuse", "a context too long for the model: refuse or truncate", one_of("refuse", "truncate")
    ),
    "joiner": Setting(" ", "what stands between sentences", text),
    "encoding": Setting("utf-8", "encoding of files that are not UTF-8", text),
    "text_column": Setting(None, "column that holds the text", optional(text)),
}


@dataclass(frozen=True)
class Text:
    """A text to score, with the name its score goes by, and its sentences where its source states them."""

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
    model_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Scored:
    """Return the log-likelihoods of texts, or of continuations given as (context, continuation).

    Without a policy every token of a text longer than the model is scored once (`window="strided"`). `model_options`
    go to `load_model` (dtype, device, …), as they do in `run`.

    >>> import ensue
    >>> scored = ensue.score(["One day.", ("One", " day.")], model="random")
    >>> [score.tokens for score in scored.scores]
    [3, 2]
    """
    policy = policy or Policy(window=_WINDOW)
    requests = [
        Request(text, detail=detail) if isinstance(text, str) else Request(text[1], text[0], detail)
        for text in texts
    ]
    if isinstance(model, str):
        refuse_systems(model, "which scores no text")
    loaded = load_model(model, **(model_options or {})) if isinstance(model, str) else model
    scorer = require(loaded, Scorer, "Scoring")
    if journal is None:
        return score_requests(scorer, requests, policy=policy, progress=progress)
    with Journal(Path(journal)) as kept:
        return score_requests(scorer, requests, policy=policy, journal=kept, progress=progress)


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """Return the policy that settings describe."""
    return Policy(**{name: settings[name] for name in (*POLICY_SETTINGS, "overflow")})


def read_texts(source: str, settings: Mapping[str, Any], *, limit: int | None) -> list[Text]:
    """The texts of a file: JSON lines with `text`, `sentences` or `context` and `continuation`, or plain text.

    A text is scored as it stands. `-` is standard input: JSON lines where it begins with an object, else one text.
    """
    encoding, column, joiner = settings["encoding"], settings["text_column"], settings["joiner"]
    if source == STANDARD_INPUT:
        said = _standard_input(encoding)
        if not said.lstrip().startswith("{"):
            return [Text(STANDARD_INPUT, Request(said.rstrip("\n")))]
        lines = [
            (f"Standard input, line {n}", one) for n, one in enumerate(said.splitlines(), 1) if one.strip()
        ]
        objects = ((place, parse_line(line, place)) for place, line in lines)
        return list(islice(_rows(objects, STANDARD_INPUT, column, joiner), limit))
    path = Path(source)
    if path.suffix.lower() in JSON_LINES and path.is_file():
        return list(islice(_rows(json_objects(path, encoding), path.stem, column, joiner), limit))
    documents = read_documents(source, limit=limit, text_column=column, encoding=encoding)
    return [
        Text(d.id, Request(d.text)) if d.text is not None else _joined(d.id, d.sentences, joiner)
        for d in documents.items
    ]


def _standard_input(encoding: str) -> str:
    try:
        said = sys.stdin.buffer.read().decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise EnsueError(
            f"Standard input is not {encoding.upper()} text ({error}); name its encoding with --set encoding=…"
        ) from None
    if not said.strip():
        raise EnsueError("Standard input is empty: send it a text or JSON lines.")
    return said.removeprefix("\ufeff")


def _rows(
    objects: Iterable[tuple[str, dict[str, Any]]], label: str, column: str | None, joiner: str
) -> Iterator[Text]:
    """Each row by what it holds: a whole text, its sentences, or a continuation with its context."""
    seen: dict[str, str] = {}
    for place, row in objects:
        number = place.rpartition(" ")[2]
        if "continuation" in row:
            yield _pair(row, place, number)
            continue
        found = row_from_columns(row, place=place, id=f"{label}:{number}", domain="", text_column=column)
        if found.is_empty:
            raise EnsueError(f"{place} is a document with no text.")
        if found.id in seen:
            raise EnsueError(f"{place} has the id {found.id!r}, which {seen[found.id]} has already.")
        seen[found.id] = place
        if found.text is not None:
            yield Text(found.id, Request(found.text))
        else:
            yield _joined(found.id, found.sentences or (), joiner)


def _joined(id: str, sentences: tuple[str, ...], joiner: str) -> Text:
    return Text(id, Request(joiner.join(sentences)), sentences)


def _pair(row: Mapping[str, Any], place: str, number: str) -> Text:
    context, continuation = row.get("context", ""), row.get("continuation")
    if not isinstance(context, str) or not isinstance(continuation, str) or not continuation:
        raise EnsueError(f"{place} needs a `continuation` (and may have a `context`), both text.")
    name = row.get("id", number)
    return Text(name if isinstance(name, str) else json.dumps(name), Request(continuation, context))


def check_whole(texts: Sequence[Text]) -> None:
    """Refuse what has no profile before time is spent on scores."""
    for one in texts:
        if one.request.context:
            raise EnsueError(
                f"{one.id} is a context and a continuation; a profile needs whole texts, so leave such rows out or "
                f"score them without --profile."
            )


def text_profiles(texts: Sequence[Text], joiner: str, scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Return one profile a text: its sentences and how surprising each is, in the text as it was scored."""
    rows = []
    for one, score in zip(texts, scores, strict=True):
        whole = one.request.continuation
        sentences = list(one.sentences) or split_sentences(whole)
        ends = joined_ends(sentences, joiner) if one.sentences else ends_in(whole, sentences)
        found = profile_version("text", sentences, list(range(len(sentences))), ends, score)
        if found is None:
            raise EnsueError(
                f"{one.id} has no profile: its tokens were scored more than once (use --set window=strided) "
                f"or the model does not say where they lie."
            )
        rows.append({"document": one.id, "domain": "", "versions": [found]})
    return rows
