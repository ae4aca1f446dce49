"""The one way requests become scores: prepare, drop repeats, take what is journaled, run the rest, combine."""

from __future__ import annotations

import gc
import json
import math
import sys
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from ensue.errors import RunFailed
from ensue.models.protocols import Placed, Scorer, Streaming
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, Score, TokenCut
from ensue.parallel import ahead
from ensue.progress import Progress
from ensue.scoring.finite import beginning, not_finite
from ensue.scoring.journal import Journal
from ensue.version import __version__

# Where another device than the CPU works while texts are tokenised: the characters of the first portion (one row of a
# GPU), how many times larger each next one is, and those of the largest. The device waits where a portion takes
# longer to lay than the rows that it still has: of a small model an H200 runs one in 50 ms, and the host needs half.
_FIRST, _GROWTH, _LARGEST = 500_000, 1.6, 2_000_000


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
    # Before a thread has the tokenizer; else after what may be refused: a server is asked who it is.
    who = b"" if _on_cpu(scorer) else identity(scorer, policy)
    prepared: list[Prepared] = []
    keys: list[str] = []
    work = _Work(scorer, journal, progress, sum(map(_characters, distinct)))
    with _undisturbed(scorer):
        for portion, ready, last in _prepared(scorer, distinct, policy):
            who = who or identity(scorer, policy)
            digests = [one.digest(who) for one in ready]
            work.add([_Asked(*one) for one in zip(digests, portion, ready, strict=True)], last=last)
            prepared += ready
            keys += digests
    place = {_question(request): index for index, request in enumerate(distinct)}
    places = [place[_question(request)] for request in requests]
    scores = [
        _own(work.known[keys[index]], prepared[index], detail=request.detail)
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
        distinct=len(set(keys)),
        computed=work.computed,
        context_tokens=[prepared[index].context_tokens for index in places],
    )


class _Asked(NamedTuple):
    """A request made ready, under its journal key."""

    key: str
    request: Request
    prepared: Prepared


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


def _characters(request: Request) -> int:
    return len(request.context) + len(request.continuation)


def _prepared(
    scorer: Scorer, requests: Sequence[Request], policy: Policy
) -> Iterator[tuple[Sequence[Request], list[Prepared], bool]]:
    """Yield portions of requests made ready, the next while the one before is scored where a device of its own does
    that, and whether a portion is the last.

    A portion depends on the requests alone, so that a run that goes on is divided as it was. What may be refused is
    made ready whole: a refusal comes before any work.
    """
    refusing = policy.window == "refuse" or (
        policy.overflow == "refuse" and any(request.context or request.cut for request in requests)
    )
    if _on_cpu(scorer) or refusing or not requests:
        yield requests, scorer.prepare(requests, policy), True
        return
    portions = list(_portions(requests))
    # No more than one ahead: whoever tokenises keeps the interpreter from whoever lays rows.
    made = ahead(lambda portion: scorer.prepare(portion, policy), portions, depth=1)
    for portion, ready in zip(portions, made, strict=True):
        yield portion, ready, portion is portions[-1]


@contextmanager
def _undisturbed(scorer: Scorer) -> Iterator[None]:
    """Let nothing hold up the host where a device waits for it.

    To look for cycles of objects takes as long as ten rows. And whoever lays rows gets the interpreter back soon from
    the thread that tokenises: by default it keeps it for 5 ms each time.
    """
    if _on_cpu(scorer):
        yield
        return
    collects, interval = gc.isenabled(), sys.getswitchinterval()
    gc.disable()
    sys.setswitchinterval(min(interval, 1e-4))
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        if collects:
            gc.enable()


def _on_cpu(scorer: Scorer) -> bool:
    return not isinstance(scorer, Placed) or scorer.device_kind == "cpu"


def _portions(requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
    """Divide requests into ever larger portions: the device begins soon, and seldom has to wait."""
    begin = held = 0
    most: float = _FIRST
    for place, request in enumerate(requests):
        held += _characters(request)
        if held >= most:
            yield requests[begin : place + 1]
            begin, held, most = place + 1, 0, min(most * _GROWTH, _LARGEST)
    if begin < len(requests):
        yield requests[begin:]


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


class _Work:
    """The requests of a run, portion by portion: runs what is not known yet and adds it to what is, and to the
    journal, batch by batch."""

    def __init__(
        self, scorer: Scorer, journal: Journal | None, progress: Progress | None, characters: int
    ) -> None:
        self.scorer, self.journal, self.progress, self.characters = scorer, journal, progress, characters
        self.known: dict[str, Score] = {}
        self.computed = 0
        self._finished = self._reached = 0
        self._left: list[_Asked] = []

    def add(self, fresh: Sequence[_Asked], *, last: bool) -> None:
        """Run a portion, with what the scorer left of the one before."""
        asked = [*self._left, *fresh]
        wants_detail = dict.fromkeys((one.key for one in asked), False)
        for one in asked:
            wants_detail[one.key] |= one.request.detail
        self._recall(wants_detail)
        self.computed += len({one.key for one in fresh} - {one.key for one in self._left} - self.known.keys())
        characters = sum(_characters(one.request) for one in fresh)
        self._reached += characters
        self._left = self._run(
            {one.key: one for one in asked}, wants_detail, characters / max(self.characters, 1), last
        )

    def _recall(self, wants_detail: Mapping[str, bool]) -> None:
        """Take what the journal has, and forget what is known without the detail that is now asked for."""
        for key, detail in wants_detail.items():
            if key in self.known:
                score = self.known[key]
                if not detail or score.token_logprobs is not None or not score.tokens:
                    continue
                del self.known[key]
            found = None if self.journal is None else self.journal.get(key, detail=detail)
            if found is not None and math.isfinite(found.logprob):
                self.known[key] = found

    def _run(
        self, asked: Mapping[str, _Asked], wants_detail: Mapping[str, bool], share: float, last: bool
    ) -> list[_Asked]:
        """Run the parts that requests of this portion wait for, and return the requests that were left."""
        known = self.known
        index: dict[bytes, int] = {}
        parts: list[Part] = []
        waiting: list[dict[str, None]] = []  # the requests that still want each part
        places: dict[str, list[int]] = {}
        for key, one in asked.items():
            places[key] = [index.setdefault(part.key, len(index)) for part in one.prepared.parts]
            for place, part in zip(places[key], one.prepared.parts, strict=True):
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
            batch = [
                (key, asked[key].prepared.combine([found[place] for place in places[key]], wants_detail[key]))
                for key in ready
            ]
            known.update(batch)
            if self.journal is not None and batch:
                self.journal.add(batch)
            for key in ready:
                for place in set(places[key]):
                    del waiting[place][key]
                    if not waiting[place]:
                        del found[place]

        settle([key for key, count in missing.items() if count == 0])
        self._report(finished, total)
        batches = _Batches(self._execute(parts, done, share, last))
        for batch in batches:
            ready = []
            refused: RunFailed | None = None
            for place, part_score in batch:
                if not np.isfinite(part_score.logprobs).all():
                    request = asked[next(iter(waiting[place]))].request
                    refused = refused or _refused(self.scorer, part_score, request)
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
            self._report(finished, total)
        self._finished += total - sum(parts[place].size for place in batches.left)
        return [one for key, one in asked.items() if not batches.left.isdisjoint(places[key])]

    def _execute(
        self, parts: Sequence[Part], done: set[int], share: float, last: bool
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        if isinstance(self.scorer, Streaming) and not (last and share == 1.0):
            # Even where all is done: what is left of it belongs to the next portion, as it did before.
            left: set[int] = yield from self.scorer.execute_more(parts, done, share=share, last=last)
            return left
        if len(done) < len(parts):
            yield from self.scorer.execute(parts, done)
        return set()

    def _report(self, finished: int, total: int) -> None:
        """Report the progress of a portion as that of the whole, in which texts not yet tokenised are estimated."""
        if self.progress is not None:
            times = self.characters / max(self._reached, 1)
            self.progress(self._finished + finished, round((self._finished + total) * times), "tokens")


class _Batches:
    """The batches of a portion, and, once they are through, the parts that were left."""

    def __init__(self, batches: Generator[list[tuple[int, PartScore]], None, set[int]]) -> None:
        self._batches = batches
        self.left: set[int] = set()

    def __iter__(self) -> Iterator[list[tuple[int, PartScore]]]:
        self.left = yield from self._batches


def _refused(scorer: Scorer, score: PartScore, request: Request) -> RunFailed:
    """Return the error about a part with a log-probability that is no number; what other texts have is kept."""
    bad = score.logprobs[~np.isfinite(score.logprobs)][0]
    what = beginning(request.context + request.continuation)
    if request.context:
        what += f" (scored: {request.continuation[:40]!r})"
    card = scorer.card
    return not_finite(float(bad), model=card.name, dtype=card.identity.get("dtype"), what=what)
