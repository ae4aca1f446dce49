"""A model that workers have: it can do what theirs can, and divides work among them without changing a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from ensue.execute.crew import Crew
from ensue.execute.worker import ModelFacts, ModelKey
from ensue.models.card import ModelCard
from ensue.models.protocols import Model
from ensue.models.request import Part, PartScore, Policy, Prepared, Request
from ensue.scoring.shares import gather

# Characters of requests that a worker makes ready at once, and batches of texts that it reads at once at most.
_CHARACTERS = 1_000_000
_BATCHES = 16


class RemoteModel:
    """A model of the workers'. What it can do is added to a class of its own by `remote_model`."""

    def __init__(self, crew: Crew, key: ModelKey, facts: ModelFacts) -> None:
        self._crew, self._key = crew, key
        self.card: ModelCard = facts.card
        self.__dict__.update(facts.facts)

    @property
    def at_once(self) -> int:
        """How many calls may be under way at once, from threads of their own."""
        return self._crew.size

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return self._crew.do("call", self._key, method, arguments, options)

    def _prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        """Make requests ready, portions of them side by side."""
        portions = ((portion, policy) for portion in _portions(requests))
        made = self._crew.in_turn("call", ((self._key, "prepare", portion, {}) for portion in portions))
        return [prepared for portion in made for prepared in portion]

    def _execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        """Score parts, shares of them side by side; what comes first is yielded first."""
        shares = self._crew.do("divide", self._key, parts, frozenset(done))
        worked = self._crew.each("work", [(self._key, share) for share in shares])
        yield from gather(pieces for _, pieces in worked)

    def _read(
        self, method: str, texts: Sequence[Any], arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> list[Any]:
        """Have texts read, those together that one model would read together."""
        batches = self._crew.do("together", self._key, method, texts)
        size = max(min(_BATCHES, len(batches) // self._crew.size), 1)
        bundles = [batches[begin : begin + size] for begin in range(0, len(batches), size)]
        calls = [
            (
                self._key,
                method,
                [([texts[place] for place in batch], *arguments) for batch in bundle],
                options,
            )
            for bundle in bundles
        ]
        out: list[Any] = [None] * len(texts)
        for number, found in self._crew.each("call_each", calls):
            for batch, values in zip(bundles[number], found, strict=True):
                for place, value in zip(batch, values, strict=True):
                    out[place] = value
        return out


def _whole(name: str) -> Callable[..., Any]:
    def method(self: RemoteModel, *arguments: Any, **options: Any) -> Any:
        return self._call(name, *arguments, **options)

    method.__name__ = name
    return method


def _encode(self: RemoteModel, texts: Sequence[str], **options: Any) -> Any:
    if not texts:
        return self._call("encode", texts, **options)
    return np.stack(self._read("encode", texts, (), options))


def _read_together(name: str) -> Callable[..., Any]:
    def method(self: RemoteModel, texts: Sequence[Any], *arguments: Any, **options: Any) -> Any:
        return self._read(name, texts, arguments, options)

    method.__name__ = name
    return method


_DIVIDED: dict[str, Callable[..., Any]] = {
    "prepare": RemoteModel._prepare,
    "execute": RemoteModel._execute,
    "encode": _encode,
    "encode_tokens": _read_together("encode_tokens"),
    "rate": _read_together("rate"),
    "read": _read_together("read"),
}


def remote_model(crew: Crew, key: ModelKey) -> Model:
    """Return a model that has the methods of the workers', and no others: protocols look for these."""
    facts: ModelFacts = crew.do("facts", key)
    methods = {name: _DIVIDED.get(name) or _whole(name) for name in facts.methods}
    kind = type("RemoteModel", (RemoteModel,), methods)
    made: Model = kind(crew, key._replace(identity=facts.card.identity), facts)
    return made


def _portions(requests: Sequence[Request]) -> Iterator[Sequence[Request]]:
    """Divide requests, in order, into portions of about so many characters."""
    begin = held = 0
    for place, request in enumerate(requests):
        held += len(request.context) + len(request.continuation)
        if held >= _CHARACTERS:
            yield requests[begin : place + 1]
            begin, held = place + 1, 0
    if begin < len(requests):
        yield requests[begin:]
