"""The append-only record of finished scores, from which a killed run goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from ensue.errors import EnsueError
from ensue.scoring.request import Score

_VERSION = 1


class Journal:
    """Scores by key, on disk as one JSON line each.

    A key is a digest of everything that changes a score (model identity, policy, tokens), so a record can
    only ever answer the question it was made for. A torn last line, as a kill leaves it, is cut off.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Kept as written: as numbers, a hundred tokens' detail takes five times the memory.
        self._lines: dict[str, bytes] = {}
        if path.exists() and not path.is_file():
            raise EnsueError(f"{path} is no file, so it cannot be a journal of scores.")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered: what could not be written must not be tried again when the file is closed.
            self._file = path.open("r+b" if path.exists() else "x+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.truncate(self._load())
            self._file.seek(0, os.SEEK_END)
        except BlockingIOError:
            raise EnsueError(f"Another process is writing to the journal {path}.") from None
        except OSError as error:
            raise EnsueError(f"The journal {path} cannot be written: {error.strerror}.") from error

    def _load(self) -> int:
        """Take in the records and return how many bytes of the file they fill."""
        good = 0
        with self.path.open("rb") as lines:
            for line in lines:
                record = _parse(line)
                if record is None:
                    if good == 0 and line.endswith(b"\n"):
                        raise EnsueError(f"{self.path} is not a journal of scores, so it was left as it is.")
                    break
                self._lines[record[0]] = line
                good += len(line)
        return good

    def __len__(self) -> int:
        return len(self._lines)

    def get(self, key: str, *, detail: bool) -> Score | None:
        """The score under a key; one without token detail does not answer a request for it."""
        line = self._lines.get(key)
        record = None if line is None else _parse(line)
        score = None if record is None else record[1]
        if score is not None and detail and score.token_logprobs is None and score.tokens:
            return None
        return score

    def add(self, scores: Iterable[tuple[str, Score]]) -> None:
        """Append a batch of scores and hand it to the operating system."""
        lines = []
        for key, score in scores:
            self._lines[key] = _line(key, score)
            lines.append(self._lines[key])
        left = memoryview(b"".join(lines))
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise EnsueError(
                f"The journal {self.path} cannot be written: {error.strerror}; finished scores are kept, make "
                f"room and go on (a run with --resume)."
            ) from error

    def close(self) -> None:
        try:
            os.fsync(self._file.fileno())
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _line(key: str, score: Score) -> bytes:
    # repr of a float is exact: what is read back is what was computed, to the last bit.
    record = [_VERSION, key, score.logprob, score.tokens, score.logprob_per_token]
    if score.token_logprobs is not None:
        record += [list(score.token_logprobs), score.token_spans]
    return (json.dumps(record, separators=(",", ":")) + "\n").encode()


def _parse(line: bytes) -> tuple[str, Score] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        version, key, logprob, tokens, mean, *detail = json.loads(line)
        if version != _VERSION or not isinstance(key, str):
            return None
        if not detail:
            return key, Score(float(logprob), int(tokens), float(mean))
        logprobs, spans = detail
        pairs = None if spans is None else tuple((int(a), int(b)) for a, b in spans)
        return key, Score(float(logprob), int(tokens), float(mean), tuple(map(float, logprobs)), pairs)
    except (ValueError, TypeError):
        return None
