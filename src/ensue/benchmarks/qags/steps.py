"""The record of questions and answers a run has so far: equal requests are done once, a killed run goes on."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from ensue.errors import EnsueError

Request = TypeVar("Request", bound=Sequence[Any])
Told = Callable[[int, int], None]


class Steps:
    """Finished steps by key, on disk as one JSON line each, or in memory only.

    A key is a digest of everything that changes an outcome (the step, the model's identity, its options, the texts).
    A torn last line, as a kill leaves it, is cut off.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self._values: dict[str, Any] = {}
        self._file = None if path is None else self._open(path)

    def _open(self, path: Path) -> Any:
        if path.exists() and not path.is_file():
            raise EnsueError(f"{path} is no file, so it cannot hold questions and answers.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("r+b" if path.exists() else "x+b", buffering=0)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(self._load(path))
            file.seek(0, os.SEEK_END)
        except BlockingIOError:
            raise EnsueError(f"Another process is writing to {path}.") from None
        except OSError as error:
            raise EnsueError(f"{path} cannot be written: {error.strerror}.") from error
        return file

    def _load(self, path: Path) -> int:
        """Take in the records and return how many bytes of the file they fill."""
        good = 0
        with path.open("rb") as lines:
            for line in lines:
                record = _parse(line)
                if record is None:
                    if good == 0 and line.endswith(b"\n"):
                        raise EnsueError(
                            f"{path} holds no questions and answers, so it was left as it is; name another file."
                        )
                    break
                self._values[record[0]] = record[1]
                good += len(line)
        return good

    def __len__(self) -> int:
        return len(self._values)

    def has(self, key: str) -> bool:
        return key in self._values

    def get(self, key: str) -> Any:
        return self._values[key]

    def add(self, records: Iterable[tuple[str, Any]]) -> None:
        """Append a batch and hand it to the operating system."""
        lines = []
        for key, value in records:
            lines.append((json.dumps([key, value], separators=(",", ":")) + "\n").encode())
            # As it would be read back, so that a run that goes on sees the same as one that was never stopped.
            self._values[key] = json.loads(lines[-1])[1]
        if self._file is None:
            return
        left = memoryview(b"".join(lines))
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise EnsueError(
                f"{self.path} cannot be written: {error.strerror}; finished questions are kept, make room and run "
                f"again with --resume."
            ) from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

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


def _parse(line: bytes) -> tuple[str, Any] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        key, value = json.loads(line)
    except (ValueError, TypeError):
        return None
    return (key, value) if isinstance(key, str) else None
