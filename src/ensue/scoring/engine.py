"""The one way requests become scores: prepare, drop repeats, take what is journaled, run the rest, combine."""

from __future__ import annotations

import gc
import json
import math
import sys
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from ensue.errors import RunFailed
from ensue.models.protocols import Scorer, Streaming
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, Score
from ensue.progress import Progress
from ensue.records import Records
from ensue.scoring.finite import beginning, not_finite
from ensue.scoring.journal import Journal
from ensue.scoring.portions import Wanted, count_characters, made_ready, may_refuse, on_cpu
from ensue.version import __version__

Thing = TypeVar("Thing")


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
    scoring = Scoring(scorer, policy=policy, journal=journal, progress=progress)
    refusing = may_refuse(scoring.policy, requests)
    asked = ((None, request) for request in requests)
    answers = [one for _, one in scoring.each(asked, count_characters(requests), refusing=refusing)]
    return Scored(
        scores=[one.score for one in answers],
        signature=scoring.signature,
        notes=scoring.notes,
        tokens=sum(one.score.tokens for one in answers),
        distinct=len({one.key for one in answers}),
        computed=scoring.computed,
        context_tokens=[one.context_tokens for one in answers],
    )


class Answer(NamedTuple):
    """The score of a request, its journal key, and how much context one that was cut in tokens was left with."""

    score: Score
    key: str
    context_tokens: int | None


class Scoring:
    """Scores a stream of requests, and says what was done: what is held of it at once is a portion.

    `notes` counts what was done to requests on the way, `computed` those that were not in the journal. Without a
    journal, what is known is kept in one that goes when the scoring does.
    """

    def __init__(
        self,
        scorer: Scorer,
        *,
        policy: Policy | None = None,
        journal: Journal | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.scorer, self.policy, self.progress = scorer, policy or Policy(), progress
        self.journal = Journal(Records()) if journal is None else journal
        scorer.check(self.policy)
        self.notes: Counter[str] = Counter()
        self.computed = 0

    @property
    def signature(self) -> str:
        return signature(self.scorer, self.policy)

    def each(
        self, asked: Iterable[tuple[Thing, Request]], characters: int, *, refusing: bool
    ) -> Iterator[tuple[Thing, Answer]]:
        """Score each request, in order, and yield what it was asked for with its answer.

        `characters` are about those of all (`count_characters`); `refusing` says whether some may be refused
        (`may_refuse`): a refusal comes before any work, and so all are made ready at once.
        """
        # Before a thread has the tokenizer; else after what may be refused: a server is asked who it is.
        who = b"" if on_cpu(self.scorer) else identity(self.scorer, self.policy)
        work = _Work(self.scorer, self.journal, self.progress, characters)
        waiting: deque[tuple[Wanted[Thing], _Asked]] = deque()
        with _undisturbed(self.scorer):
            for portion, prepared, last in made_ready(self.scorer, asked, self.policy, refusing=refusing):
                who = who or identity(self.scorer, self.policy)
                keys = (one.digest(who) for one in prepared)
                fresh = [_Asked(*one) for one in zip(keys, portion.requests, prepared, strict=True)]
                for one in prepared:
                    self.notes.update(one.notes)
                waiting.extend((wanted, fresh[wanted.place]) for wanted in portion.wanted)
                left = work.add(fresh, portion.characters, last=last)
                self.computed = work.computed
                while waiting and waiting[0][1].key not in left:
                    wanted, done = waiting.popleft()
                    yield wanted.thing, done.answer(work.known[done.key], wanted.detail)
                work.forget_all_but({one.key for _, one in waiting})
                # Before the next portion is made ready.
                del portion, prepared, fresh


class _Asked(NamedTuple):
    """A request made ready, under its journal key."""

    key: str
    request: Request
    prepared: Prepared

    def answer(self, score: Score, detail: bool) -> Answer:
        """Return a score as it was asked for, in detail or not.

        Texts that differ only in what their tokenizer drops (case, accents, spaces) have tokens and score in common,
        but each has its own characters.
        """
        spans = self.prepared.spans
        if not detail:
            score = score._replace(token_logprobs=None, token_spans=None)
        elif spans is not None and score.token_logprobs is not None:
            score = score._replace(token_spans=spans)
        return Answer(score, self.key, self.prepared.context_tokens)


@contextmanager
def _undisturbed(scorer: Scorer) -> Iterator[None]:
    """Let nothing hold up the host where a device waits for it.

    To look for cycles of objects takes as long as ten rows. And whoever lays rows gets the interpreter back soon from
    the thread that tokenises: by default it keeps it for 5 ms each time.
    """
    if on_cpu(scorer):
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


class _Work:
    """The requests of a run, portion by portion: runs what is not known yet and adds it to what is, and to the
    journal, batch by batch."""

    def __init__(self, scorer: Scorer, journal: Journal, progress: Progress | None, characters: int) -> None:
        self.scorer, self.journal, self.progress, self.characters = scorer, journal, progress, characters
        self.known: dict[str, Score] = {}
        self.computed = 0
        self._finished = self._reached = 0
        self._left: list[_Asked] = []
        self._first = True

    def add(self, fresh: Sequence[_Asked], characters: int, *, last: bool) -> set[str]:
        """Run a portion, with what the scorer left of the one before; return the keys of what it leaves now."""
        asked = [*self._left, *fresh]
        wants_detail = dict.fromkeys((one.key for one in asked), False)
        for one in asked:
            wants_detail[one.key] |= one.request.detail
        self._recall(wants_detail)
        self.computed += len({one.key for one in fresh} - {one.key for one in self._left} - self.known.keys())
        self._reached += characters
        if last:
            self.characters = self._reached
        # A scorer that is given all there is at once need not be told so.
        share = None if self._first and last else min(characters / max(self.characters, 1), 1.0)
        self._first = False
        self._left = self._run({one.key: one for one in asked}, wants_detail, share, last)
        return {one.key for one in self._left}

    def forget_all_but(self, keys: Set[str]) -> None:
        """Forget scores that the journal has, and nobody waits for any more."""
        self.known = {key: score for key, score in self.known.items() if key in keys}

    def _recall(self, wants_detail: Mapping[str, bool]) -> None:
        """Take what the journal has, and forget what is known without the detail that is now asked for."""
        for key, detail in wants_detail.items():
            if key in self.known:
                score = self.known[key]
                if not detail or score.token_logprobs is not None or not score.tokens:
                    continue
                del self.known[key]
            found = self.journal.get(key, detail=detail)
            if found is not None and math.isfinite(found.logprob):
                self.known[key] = found

    def _run(
        self, asked: Mapping[str, _Asked], wants_detail: Mapping[str, bool], share: float | None, last: bool
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
            if batch:
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
        self, parts: Sequence[Part], done: set[int], share: float | None, last: bool
    ) -> Generator[list[tuple[int, PartScore]], None, set[int]]:
        if isinstance(self.scorer, Streaming) and share is not None:
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
