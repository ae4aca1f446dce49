"""The record of questions and answers a run has so far: equal requests are done once, a killed run goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ensue.records import Records, plain

Request = TypeVar("Request", bound=Sequence[Any])
Told = Callable[[int, int], None]

_STEPS = plain("steps")


class Steps:
    """Finished steps by key: in a file of their own, among the records of a run, or in memory only.

    A key is a digest of everything that changes an outcome (the step, the model's identity, its options, the texts).
    Damaged lines are dropped, counted in `damaged` and done again; see `ensue.records` for the file.
    """

    def __init__(self, kept: Path | Records | None = None) -> None:
        self._records = kept if isinstance(kept, Records) else Records(kept)
        self._own = not isinstance(kept, Records)

    @property
    def damaged(self) -> int:
        """How many lines of its own file were dropped; a run tells of those among its records itself."""
        return self._records.damaged if self._own else 0

    def __len__(self) -> int:
        return self._records.count(_STEPS)

    def has(self, key: str) -> bool:
        return self._records.has(_STEPS, key)

    def get(self, key: str) -> Any:
        """The outcome as it was written, which a run that goes on sees as one that was never stopped does."""
        return self._records.get(_STEPS, key)

    def add(self, outcomes: Iterable[tuple[str, Any]]) -> None:
        """Append a batch and hand it to the operating system."""
        self._records.add(_STEPS, outcomes)

    def close(self) -> None:
        """Close the file, unless it is a run's, which goes on with it."""
        if self._own:
            self._records.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def once(
    steps: Steps,
    question: Mapping[str, Any],
    requests: Sequence[Request],
    work: Callable[[Sequence[Request]], Sequence[Any]],
    *,
    chunk: int,
    tell: Told | None = None,
) -> list[Any]:
    """The outcome of every request, each distinct one done once, `chunk` at a time.

    Chunks are cut from all distinct requests, whatever is known already, and one of which anything is missing is done
    whole: so a batch holds the same texts in a run that goes on as in one that was never stopped.
    """
    asked = json.dumps(question, sort_keys=True)
    keys = [_digest(asked, request) for request in requests]
    distinct = list(dict(zip(keys, requests, strict=True)).items())
    for start in range(0, len(distinct), chunk):
        part = distinct[start : start + chunk]
        if not all(steps.has(key) for key, _ in part):
            done = work([request for _, request in part])
            if len(done) != len(part):
                raise ValueError(f"{len(part)} requests were given back {len(done)} outcomes.")
            steps.add((key, outcome) for (key, _), outcome in zip(part, done, strict=True))
        if tell is not None:
            tell(min(start + chunk, len(distinct)), len(distinct))
    return [steps.get(key) for key in keys]


def _digest(asked: str, request: Sequence[Any]) -> str:
    return hashlib.sha256(f"{asked}\n{json.dumps(list(request))}".encode()).hexdigest()[:32]
