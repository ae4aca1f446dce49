"""The one way requests become scores: prepare, drop repeats, take what is journaled, run the rest, combine."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ensue.errors import RunFailed
from ensue.models.protocols import Scorer
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, Score, TokenCut
from ensue.progress import Progress
from ensue.scoring.finite import beginning, not_finite
from ensue.scoring.journal import Journal
from ensue.version import __version__


@dataclass(frozen=True)
class Scored:
    """The scores of all requests, in order, and what was done to get them.

    `tokens` counts scored tokens over all requests; `computed` the requests that were not in the journal;
    `context_tokens` says how much context each request that was cut in tokens was left with.
    """

    scores: list[Score]
    signature: str
    notes: Counter[str]
    tokens: int
    distinct: int
    computed: int
    context_tokens: list[int | None]


def signature(scorer: Scorer, policy: Policy) -> str:
    """Return the choices behind a score in one line, printed with every result."""
    return f"ensue:{__version__} {choices(scorer, policy)}"


def choices(scorer: Scorer, policy: Policy) -> str:
    """Return what a signature says of the model and of the policy."""
    card = scorer.card
    weights = card.identity.get("weights", "-")[:12]
    return f"model:{card.signed_name} weights:{weights} {scorer.policy_signature(policy)}"


def identity(scorer: Scorer, policy: Policy) -> bytes:
    """Return everything but the tokens that changes a score, for journal keys."""
    facts = {"model": scorer.card.identity, "kind": scorer.card.kind, "policy": asdict(policy)}
    return json.dumps([facts, scorer.policy_signature(policy)], sort_keys=True).encode()


def score(
    scorer: Scorer,
    requests: Sequence[Request],
    *,
    policy: Policy | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> Scored:
    """Score every request; each distinct one is computed once and journaled as soon as it is known."""
    policy = policy or Policy()
    scorer.check(policy)
    distinct = _distinct(requests)
    prepared = scorer.prepare(distinct, policy)
    who = identity(scorer, policy)
    keys = [p.digest(who) for p in prepared]
    known: dict[str, Score] = {}
    wants_detail = dict.fromkeys(keys, False)
    for key, request in zip(keys, distinct, strict=True):
        wants_detail[key] |= request.detail
    if journal is not None:
        for key in keys:
            found = journal.get(key, detail=wants_detail[key])
            if found is not None and math.isfinite(found.logprob):
                known[key] = found
    ready = set(known)
    named = dict(zip(keys, distinct, strict=True))
    _compute(scorer, dict(zip(keys, prepared, strict=True)), named, wants_detail, known, journal, progress)
    place = {_question(request): index for index, request in enumerate(distinct)}
    places = [place[_question(request)] for request in requests]
    scores = [
        _own(known[keys[index]], prepared[index], detail=request.detail)
        for index, request in zip(places, requests, strict=True)
    ]
    notes: Counter[str] = Counter()
    for item in prepared:
        notes.update(item.notes)
    return Scored(
        scores=scores,
        signature=signature(scorer, policy),
        notes=notes,
        tokens=sum(s.tokens for s in scores),
        distinct=len(wants_detail),
        computed=len(wants_detail) - len(ready),
        context_tokens=[prepared[index].context_tokens for index in places],
    )


def _question(request: Request) -> tuple[str, str, TokenCut | None]:
    """Return what is asked, but for the detail of the answer."""
    return request.context, request.continuation, request.cut


def _distinct(requests: Sequence[Request]) -> list[Request]:
    """Return each question once, in order of first appearance; detail if any asks for it."""
    seen: dict[tuple[str, str, TokenCut | None], Request] = {}
    for request in requests:
        key = _question(request)
        if key not in seen or (request.detail and not seen[key].detail):
            seen[key] = request
    return list(seen.values())


def _own(score: Score, prepared: Prepared, *, detail: bool) -> Score:
    """Return a score as one request asked for it.

    Texts that differ only in what their tokenizer drops (case, accents, spaces) have tokens and score in common, but
    each has its own characters.
    """
    if not detail:
        return score._replace(token_logprobs=None, token_spans=None)
    if prepared.spans is None or score.token_logprobs is None:
        return score
    return score._replace(token_spans=prepared.spans)


def _compute(
    scorer: Scorer,
    prepared: dict[str, Prepared],
    named: dict[str, Request],
    wants_detail: dict[str, bool],
    known: dict[str, Score],
    journal: Journal | None,
    progress: Progress | None,
) -> None:
    """Run what is not known yet and add it to `known` and to the journal, batch by batch."""
    index: dict[bytes, int] = {}
    parts: list[Part] = []
    waiting: list[dict[str, None]] = []  # the requests that still want each part
    places: dict[str, list[int]] = {}
    for key, item in prepared.items():
        places[key] = [index.setdefault(part.key, len(index)) for part in item.parts]
        for place, part in zip(places[key], item.parts, strict=True):
            if place == len(parts):
                parts.append(part)
                waiting.append({})
            if key not in known:
                waiting[place][key] = None
    missing = {key: len(set(where)) for key, where in places.items() if key not in known}
    done = {place for place, keys in enumerate(waiting) if not keys}
    total = sum(part.size for part in parts)
    finished = sum(parts[place].size for place in done)
    found: dict[int, PartScore] = {}

    def settle(ready: list[str]) -> None:
        batch = [(k, prepared[k].combine([found[p] for p in places[k]], wants_detail[k])) for k in ready]
        known.update(batch)
        if journal is not None and batch:
            journal.add(batch)
        for key in ready:
            for place in set(places[key]):
                del waiting[place][key]
                if not waiting[place]:
                    del found[place]

    settle([key for key, count in missing.items() if count == 0])
    if progress is not None:
        progress(finished, total, "tokens")
    if len(done) == len(parts):
        return
    for batch in scorer.execute(parts, done):
        ready = []
        refused: RunFailed | None = None
        for place, part_score in batch:
            if not np.isfinite(part_score.logprobs).all():
                refused = refused or _refused(scorer, part_score, named[next(iter(waiting[place]))])
                continue
            found[place] = part_score
            finished += parts[place].size
            for key in waiting[place]:
                missing[key] -= 1
                if missing[key] == 0:
                    ready.append(key)
        settle(ready)
        if refused is not None:
            raise refused
        if progress is not None:
            progress(finished, total, "tokens")


def _refused(scorer: Scorer, score: PartScore, request: Request) -> RunFailed:
    """Return the error about a part with a log-probability that is no number; what other texts have is kept."""
    bad = score.logprobs[~np.isfinite(score.logprobs)][0]
    what = beginning(request.context + request.continuation)
    if request.context:
        what += f" (scored: {request.continuation[:40]!r})"
    card = scorer.card
    return not_finite(float(bad), model=card.name, dtype=card.identity.get("dtype"), what=what)
