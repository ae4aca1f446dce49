"""The desk between visitors who try a text and the workers that have a model; all of it in memory.

In memory and not in the database: a text that somebody pastes is nobody's to keep, so it is on no disk and in no
backup, and a server that stops forgets it. There is one server process to a home, so one desk. A page whose request
is gone is told so and asks for the text again.

    waiting ──take──▶ running ──result──▶ done
       ▲                 │ └──refused, too long, worker lost twice──▶ failed (with a reason)
       └──worker lost────┘            nobody looks any more: forgotten
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ensue.platform.clock import Clock
from ensue.platform.database.schema import new_id
from ensue.platform.refusals import Busy, Invalid, NotFound, TooMany

# What is tried, the texts it is given, and the most characters of each.
FIELDS: Mapping[str, Mapping[str, int]] = {
    "profile": {"text": 20_000},
    "qags": {"source": 20_000, "summary": 2_000},
}
LEASE = timedelta(seconds=12)  # without a word of it, a worker is lost
LONGEST = timedelta(minutes=10)  # of one request
KEPT = timedelta(minutes=15)  # after it is done
UNWATCHED = timedelta(minutes=3)  # without a look of the visitor
ALONE = timedelta(minutes=2)  # without a worker that has the model
_ATTEMPTS = 2
_MOST_WAITING, _MOST_OF_ONE, _MOST_WORKERS = 40, 3, 100


class Offer(NamedTuple):
    """What a worker does: `profile` or `qags`, and with which model."""

    kind: str
    model: str


class Leased(NamedTuple):
    """A request that a worker is to do, as long as it keeps the lease."""

    lease: str
    offer: Offer
    texts: Mapping[str, str]


class Progress(NamedTuple):
    """How far a request is; `total` is 0 where nobody knows."""

    done: int = 0
    total: int = 0
    unit: str = ""


_NOTHING = Progress()


class View(NamedTuple):
    """A request as its visitor sees it: `place` 1 is next; `attended` is whether a worker has the model."""

    id: str
    offer: Offer
    state: str
    place: int | None
    progress: Progress
    attended: bool
    reason: str | None
    result: Any
    gone_at: datetime | None


@dataclass
class _Request:
    id: str
    offer: Offer
    by: str
    texts: Mapping[str, str]
    looked_at: datetime
    state: str = "waiting"
    lease: str = ""
    worker: str = ""
    lease_until: datetime | None = None
    begun_at: datetime | None = None
    alone_since: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0
    progress: Progress = _NOTHING
    reason: str | None = None
    result: Any = None

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None


@dataclass
class _Worker:
    offers: frozenset[Offer]
    seen_at: datetime = field(compare=False)


class Desk:
    """Requests in the order they came, and the workers that are connected."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._requests: dict[str, _Request] = {}
        self._workers: dict[str, _Worker] = {}

    # What visitors do

    def offers(self) -> list[Offer]:
        """Return what can be tried: what the workers that are connected have."""
        with self._lock:
            self._tidy(self.clock.now())
            return sorted(self._offered())

    def ask(self, offer: Offer, given: Mapping[str, str], by: str) -> str:
        """Take a request and return its id; `by` is whom it is counted against."""
        texts = checked(offer.kind, given)
        with self._lock:
            now = self.clock.now()
            self._tidy(now)
            if offer not in self._offered():
                raise Busy("No worker with this model is connected now; try again later.")
            waiting = [one for one in self._requests.values() if not one.is_over]
            if sum(one.by == by for one in waiting) >= _MOST_OF_ONE:
                words = f"You have {_MOST_OF_ONE} texts here that are not done; wait for them."
                raise TooMany(words, now + timedelta(minutes=1))
            if len(waiting) >= _MOST_WAITING:
                raise Busy("Too many texts are waiting; try again in a minute.")
            made = _Request(new_id(), offer, by, texts, looked_at=now)
            self._requests[made.id] = made
            return made.id

    def look(self, id: str) -> View:
        """Return a request as it stands; who looks keeps it from being forgotten."""
        with self._lock:
            now = self.clock.now()
            one = self._requests.get(id)
            if one is not None:
                one.looked_at = now
            self._tidy(now)
            if one is None or id not in self._requests:
                raise NotFound(
                    "This text is here no more: it was deleted, its time was over, or the server was started anew."
                )
            place = None
            if one.state == "waiting":
                same = (other for other in self._requests.values() if other.offer == one.offer)
                place = [other.id for other in same if other.state == "waiting"].index(id) + 1
            attended = one.offer in self._offered()
            gone_at = one.ended_at and one.ended_at + KEPT
            return View(
                id, one.offer, one.state, place, one.progress, attended, one.reason, one.result, gone_at
            )

    def forget(self, id: str) -> None:
        """Delete a request, its text and its result; a worker that reads it is told to stop."""
        with self._lock:
            if self._requests.pop(id, None) is None:
                raise NotFound("This text is here no more.")

    # What workers do

    def connect(self, offers: Sequence[Offer]) -> str:
        """Connect a worker and return its id."""
        with self._lock:
            now = self.clock.now()
            self._tidy(now)
            if len(self._workers) >= _MOST_WORKERS:
                raise Busy("Too many workers are connected.")
            made = new_id()
            self._workers[made] = _Worker(frozenset(offers), now)
            return made

    def disconnect(self, worker: str) -> None:
        """Let a worker go; what it was doing waits for another, and does not count as tried."""
        with self._lock:
            if self._workers.pop(worker, None) is None:
                raise _unknown_worker()
            for one in self._requests.values():
                if one.worker == worker and one.state == "running":
                    one.attempts -= 1
                    _queue(one)

    def take(self, worker: str) -> Leased | None:
        """Lease the oldest request that a worker can do; None where there is none."""
        with self._lock:
            now = self.clock.now()
            if worker in self._workers:
                self._workers[worker].seen_at = now
            self._tidy(now)
            if worker not in self._workers:
                raise _unknown_worker()
            offers = self._workers[worker].offers
            for one in self._requests.values():
                if one.state == "waiting" and one.offer in offers:
                    one.state, one.lease, one.worker = "running", new_id(), worker
                    one.lease_until, one.begun_at = now + LEASE, now
                    one.attempts += 1
                    return Leased(one.lease, one.offer, one.texts)
            return None

    def beat(self, worker: str, lease: str, progress: Progress) -> None:
        """Extend a lease and note how far the request is; refuse where the lease is lost."""
        with self._lock:
            one = self._leased(worker, lease)
            one.lease_until, one.progress = self.clock.now() + LEASE, progress

    def finish(self, worker: str, lease: str, result: Any) -> None:
        """Take the result of a request."""
        with self._lock:
            self._end(self._leased(worker, lease), "done", result=result)

    def fail(self, worker: str, lease: str, reason: str) -> None:
        """Take a worker's word that a request cannot be done."""
        with self._lock:
            self._end(self._leased(worker, lease), "failed", reason=reason)

    def leased(self, worker: str, lease: str) -> Leased:
        """Return a request that a worker is doing."""
        with self._lock:
            one = self._leased(worker, lease)
            return Leased(lease, one.offer, one.texts)

    # How it is kept in order; all of this under the lock

    def _offered(self) -> set[Offer]:
        return {offer for worker in self._workers.values() for offer in worker.offers}

    def _leased(self, worker: str, lease: str) -> _Request:
        now = self.clock.now()
        if worker in self._workers:
            self._workers[worker].seen_at = now
        self._tidy(now)
        for one in self._requests.values():
            if (one.worker, one.lease, one.state) == (worker, lease, "running"):
                return one
        raise NotFound("This lease is over.")

    def _end(self, one: _Request, state: str, *, reason: str | None = None, result: Any = None) -> None:
        one.state, one.reason, one.result = state, reason, result
        one.ended_at, one.texts = self.clock.now(), {}

    def _tidy(self, now: datetime) -> None:
        """Note what the time that passed has changed."""
        for id, worker in list(self._workers.items()):
            if now - worker.seen_at > LEASE:
                del self._workers[id]
        offered = self._offered()
        for one in list(self._requests.values()):
            if one.ended_at is not None:
                if now - one.ended_at > KEPT:
                    del self._requests[one.id]
                continue
            if now - one.looked_at > UNWATCHED:
                del self._requests[one.id]
                continue
            self._pass(one, now, offered)

    def _pass(self, one: _Request, now: datetime, offered: set[Offer]) -> None:
        if one.state == "running":
            assert one.lease_until is not None
            assert one.begun_at is not None
            if now - one.begun_at > LONGEST:
                minutes = LONGEST // timedelta(minutes=1)
                self._end(one, "failed", reason=f"It took longer than {minutes} minutes; try a shorter text.")
            elif now > one.lease_until or one.worker not in self._workers:
                if one.attempts >= _ATTEMPTS:
                    words = "The worker was lost while it read this text, twice; try a shorter one."
                    self._end(one, "failed", reason=words)
                else:
                    _queue(one)
        if one.state == "waiting":
            one.alone_since = None if one.offer in offered else one.alone_since or now
            if one.alone_since is not None and now - one.alone_since > ALONE:
                words = "The worker that has this model went away and none came back; try again later."
                self._end(one, "failed", reason=words)


def checked(kind: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the texts that a kind of request needs, cleaned; refuse what is missing, empty or too long.

    >>> checked("profile", {"text": " One.\\r\\nTwo\\x00. "})
    {'text': 'One.\\nTwo .'}
    """
    if kind not in FIELDS:
        raise Invalid(f"There is nothing called {kind[:40]!r} to try; there is {', '.join(FIELDS)}.")
    found = {}
    for name, most in FIELDS[kind].items():
        text = cleaned(given.get(name, ""))
        if not text:
            raise Invalid(f"The {name} is missing; paste one.")
        if len(text) > most:
            raise Invalid(f"The {name} has {len(text):,} characters; at most {most:,} are taken.")
        found[name] = text
    return found


def cleaned(text: str) -> str:
    """Return a text as it may be pasted from anywhere: control characters become blanks, lines end in one way."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(
        " " if character not in "\n\t" and unicodedata.category(character) in {"Cc", "Cs"} else character
        for character in text
    ).strip()


def _queue(one: _Request) -> None:
    one.state, one.lease, one.worker = "waiting", "", ""
    one.lease_until = one.begun_at = None
    one.progress = _NOTHING


def _unknown_worker() -> NotFound:
    return NotFound("This worker is not connected; connect again.")
