"""The default finder of answers, loaded when it is first needed, and the step of finding with what is known kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from ensue.benchmarks.qags.candidates import PIPELINE, Candidate, default_finder
from ensue.benchmarks.qags.steps import Request, Steps, once
from ensue.errors import TooLong
from ensue.version import __version__

# spaCy reads a summary in about ten milliseconds.
_FOUND_AT_ONCE = 512


class Finder(Protocol):
    """Finds all that can be asked about, pronouns too, and says what it is: two of one identity find the same."""

    @property
    def identity(self) -> str: ...

    def candidates(self, texts: Iterable[str]) -> Iterator[list[Candidate]]: ...


class DefaultFinder:
    """Names and noun phrases by spaCy's small English pipeline.

    spaCy is loaded when a text is to be read: a machine without it can go on from what another one found.
    """

    @property
    def identity(self) -> str:
        from ensue.fetch.catalog import catalog

        return f"{PIPELINE}-{catalog()[PIPELINE].version}"

    def candidates(self, texts: Iterable[str]) -> Iterator[list[Candidate]]:
        return default_finder().candidates(texts)


def skipping_long(
    work: Callable[[Sequence[Request]], Sequence[Any]], requests: Sequence[Request]
) -> list[Any]:
    """The outcome of each request, None for one that is too long: one such must not end a run over thousands."""
    try:
        return list(work(requests))
    except TooLong as error:
        long = set(error.places)
        others = [one for place, one in enumerate(requests) if place not in long]
        done = iter(work(others) if others else ())
        return [None if place in long else next(done) for place in range(len(requests))]


def find_candidates(
    texts: Sequence[str], finder: Finder, steps: Steps, tell: Callable[[int, int], None] | None = None
) -> dict[str, list[Candidate] | None]:
    """All candidates of each text that is not blank, None for one too long to be read.

    Which of them are asked about is chosen later.
    """
    requests = [(text,) for text in texts if text.strip()]

    def find(part: Sequence[tuple[str]]) -> list[list[Candidate]]:
        return list(finder.candidates([text for (text,) in part]))

    question = {"step": "all candidates", "version": __version__, "finder": finder.identity}
    outcomes = once(steps, question, requests, partial(skipping_long, find), chunk=_FOUND_AT_ONCE, tell=tell)
    return {
        text: None if found is None else [Candidate(*one) for one in found]
        for (text,), found in zip(requests, outcomes, strict=True)
    }
