"""Score texts without a benchmark, and the settings by which it is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ensue.backends.names import load_model
from ensue.benchmarks.base import Setting
from ensue.benchmarks.settings import POLICY_SETTINGS, one_of, optional, text
from ensue.errors import EnsueError
from ensue.executing import Chosen, Executor, LocalExecutor, executing
from ensue.models.protocols import Model, Scorer, require
from ensue.models.request import Policy, Request, Score, Window
from ensue.progress import Progress
from ensue.runs.run import load_by, refuse_systems
from ensue.runs.texts import Text
from ensue.scoring.engine import Scored, Scoring
from ensue.scoring.engine import score as score_requests
from ensue.scoring.journal import Journal
from ensue.scoring.portions import count_characters, may_refuse
from ensue.shelf import Shelf

# Of a text longer than the model every token is scored once, so that the total is a log-likelihood.
_WINDOW: Window = "strided"
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


def score(
    texts: Sequence[str | tuple[str, str]],
    *,
    model: str | Model = "smollm2",
    policy: Policy | None = None,
    journal: str | Path | None = None,
    detail: bool = False,
    model_options: Mapping[str, Any] | None = None,
    executor: str | Chosen | Executor | None = None,
    progress: Progress | None = None,
) -> Scored:
    """Return the log-likelihoods of texts, or of continuations given as (context, continuation).

    Without a policy every token of a text longer than the model is scored once (`window="strided"`). `model_options`
    go to `load_model` (dtype, device, …), and `executor` says where the model runs, as they do in `run`.

    >>> import ensue
    >>> scored = ensue.score(["One day.", ("One", " day.")], model="random")
    >>> [score.tokens for score in scored.scores]
    [3, 2]
    """
    policy = policy or Policy(window=_WINDOW)
    if isinstance(texts, str):
        raise EnsueError("The texts are one text: put it in a list.")
    requests = [_request(text, place, detail) for place, text in enumerate(texts)]
    with executing(executor) as hands, nullcontext() if journal is None else Journal(Path(journal)) as kept:
        scorer = load_scorer(model, model_options, hands=hands)
        return score_requests(scorer, requests, policy=policy, journal=kept, progress=progress)


def _request(text: str | tuple[str, str], place: int, detail: bool) -> Request:
    """Return the request of a text, or of a context and its continuation."""
    parts = ("", text) if isinstance(text, str) else tuple(text) if isinstance(text, (tuple, list)) else ()
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise EnsueError(f"Text {place} is neither a string nor a pair of strings, (context, continuation).")
    context, continuation = parts
    return Request(continuation, context, detail)


class TextScores(NamedTuple):
    """The scores of texts by their names, in order, and what was done to get them."""

    scores: Collection[tuple[str, Score]]
    notes: Counter[str]
    signature: str


def score_texts(
    texts: Collection[Text],
    *,
    model: str | Model,
    policy: Policy,
    journal: Path | None = None,
    model_options: Mapping[str, Any] | None = None,
    executor: str | Chosen | Executor | None = None,
    progress: Progress | None = None,
) -> TextScores:
    """Score texts that may be more than memory holds; so may their scores."""
    with executing(executor) as hands, nullcontext() if journal is None else Journal(journal) as kept:
        scorer = load_scorer(model, model_options, hands=hands)
        scoring = Scoring(scorer, policy=policy, journal=kept, progress=progress)
        refusing = may_refuse(policy, (text.request for text in texts))
        characters = count_characters(text.request for text in texts)
        asked = ((text.id, text.request) for text in texts)
        found = Shelf((name, one.score) for name, one in scoring.each(asked, characters, refusing=refusing))
        return TextScores(found, scoring.notes, scoring.signature)


def load_scorer(
    model: str | Model,
    options: Mapping[str, Any] | None = None,
    why: str = "Scoring",
    hands: Executor | None = None,
) -> Scorer:
    """Load a model by its name, or take one that is loaded; refuse what scores no text."""
    if isinstance(model, str):
        refuse_systems(model, "which scores no text")
        model = load_by(hands or LocalExecutor(), model, partial(load_model, model, **(options or {})))
    return require(model, Scorer, why)


def policy_of(settings: Mapping[str, Any]) -> Policy:
    """Return the policy that settings describe."""
    return Policy(**{name: settings[name] for name in (*POLICY_SETTINGS, "overflow")})
