"""Requests in portions, so that what is held at once does not grow with their number.

A portion depends on the requests, the policy and the kind of device alone: a run that goes on, and one that others
help with, is divided as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from ensue.models.protocols import Placed, Scorer, Streaming
from ensue.models.request import Policy, Prepared, Request, TokenCut
from ensue.parallel import ahead

Thing = TypeVar("Thing")

# Where another device than the CPU works while texts are tokenised: the characters of the first portion (one row of a
# GPU), how many times larger each next one is, and those of the largest. The device waits where a portion takes
# longer to lay than the rows that it still has: of a small model an H200 runs one in 50 ms, and the host needs half.
_FIRST, _GROWTH, _LARGEST = 500_000, 1.6, 2_000_000
# On a CPU: about a million tokens, which is a thousand batches, so that none of them is smaller for it.
_ON_CPU = 4_000_000
# Where a device has to wait at the end of each portion.
_ELSEWHERE = 64_000_000
# A portion ends between two contexts, unless it has become so many times as large.
_TOO_LARGE = 2


class Wanted(NamedTuple, Generic[Thing]):
    """What a request was asked for, its place among the distinct ones of a portion, and whether in detail."""

    thing: Thing
    place: int
    detail: bool


class Portion(NamedTuple, Generic[Thing]):
    """Distinct requests that are made ready and run together, what they were asked for, and their characters."""

    wanted: list[Wanted[Thing]]
    requests: list[Request]
    characters: int


class Ready(NamedTuple, Generic[Thing]):
    """A portion, its requests made ready, and whether it is the last."""

    portion: Portion[Thing]
    prepared: list[Prepared]
    last: bool


def on_cpu(scorer: Scorer) -> bool:
    """Return whether a scorer works on the CPU, or does not say."""
    return not isinstance(scorer, Placed) or scorer.device_kind == "cpu"


def may_refuse(policy: Policy, requests: Iterable[Request]) -> bool:
    """Return whether some request may be refused for its length."""
    return policy.window == "refuse" or (
        policy.overflow == "refuse" and any(request.context or request.cut for request in requests)
    )


def count_characters(requests: Iterable[Request]) -> int:
    """Count the characters of requests; a context that several in turn have in common counts once."""
    counted, context = 0, ""
    for request in requests:
        counted += _new_characters(request, context)
        context = request.context
    return counted


def _new_characters(request: Request, context: str) -> int:
    """Count the characters of a request after one with such a context."""
    return len(request.continuation) + (0 if request.context == context else len(request.context))


def divided(
    asked: Iterable[tuple[Thing, Request]], first: int, largest: int, growth: float = 1.0
) -> Iterator[Portion[Thing]]:
    """Divide requests into portions of about so many characters, between contexts where that can be.

    What is asked several times in a portion is one request, in detail if any asks for that.
    """
    wanted: list[Wanted[Thing]] = []
    requests: list[Request] = []
    known: dict[tuple[str, str, TokenCut | None], int] = {}
    held, most = 0, float(first)
    context = ""
    for thing, request in asked:
        goes_on = bool(context) and request.context == context and held < _TOO_LARGE * most
        if held >= most and not goes_on:
            yield Portion(wanted, requests, held)
            wanted, requests, known = [], [], {}
            held, most, context = 0, min(most * growth, float(largest)), ""
        held += _new_characters(request, context)
        context = request.context
        place = known.setdefault((context, request.continuation, request.cut), len(requests))
        if place == len(requests):
            requests.append(request)
        elif request.detail:
            requests[place] = request
        wanted.append(Wanted(thing, place, request.detail))
    if requests:
        yield Portion(wanted, requests, held)


def made_ready(
    scorer: Scorer, asked: Iterable[tuple[Thing, Request]], policy: Policy, *, refusing: bool
) -> Iterator[Ready[Thing]]:
    """Yield portions of requests made ready: the next one while the one before is scored, where a device of its own
    does that.

    What may be refused (`refusing`) is made ready whole: a refusal comes before any work.
    """
    if on_cpu(scorer) or refusing or not isinstance(scorer, Streaming):
        most = _ON_CPU if on_cpu(scorer) else _ELSEWHERE
        portions: Iterable[Portion[Thing]] = divided(asked, most, most)
        if refusing:
            portions = list(portions)
            made = deque(scorer.prepare([one for portion in portions for one in portion.requests], policy))
        for portion, last in with_last(portions):
            own = [made.popleft() for _ in portion.requests] if refusing else None
            yield Ready(portion, own or scorer.prepare(portion.requests, policy), last)
        return

    def make(given: tuple[Portion[Thing], bool]) -> Ready[Thing]:
        portion, last = given
        return Ready(portion, scorer.prepare(portion.requests, policy), last)

    # No more than one ahead: whoever tokenises keeps the interpreter from whoever lays rows.
    yield from ahead(make, with_last(divided(asked, _FIRST, _LARGEST, _GROWTH)), depth=1)


def with_last(things: Iterable[Thing]) -> Iterator[tuple[Thing, bool]]:
    """Yield each thing, and whether it is the last.

    >>> list(with_last("ab"))
    [('a', False), ('b', True)]
    """
    rest = iter(things)
    held = next(rest, None)
    while held is not None:
        following = next(rest, None)
        yield held, following is None
        held = following
