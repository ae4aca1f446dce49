"""A run folder: opened once, written whole or not at all, and continued only by the same question."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from ensue.errors import EnsueError

RUN, ITEMS, RESULTS, JOURNAL = "run.json", "items.jsonl", "results.json", "journal.jsonl"
LOCK = ".lock"


class RunFolder:
    """The folder of one run, locked while open."""

    def __init__(self, path: Path, asked: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self._lock: IO[str] | None = None
        try:
            self._open(json.loads(json.dumps(asked)), resume)
        except OSError as error:
            self.close()
            raise EnsueError(f"The run folder {path} cannot be used: {error.strerror}.") from error
        except EnsueError:
            self.close()
            raise

    def _open(self, asked: dict[str, Any], resume: bool) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise EnsueError(f"{self.path} is a file, not a run folder.")
        self.path.mkdir(parents=True, exist_ok=True)
        # A run that was stopped before its first file was whole leaves no more than these.
        names = {path.name for path in self.path.iterdir()} - {LOCK, f".{RUN}.part"}
        if names and RUN not in names:
            raise EnsueError(f"{self.path} is not empty and holds no run; choose another --output.")
        self._lock = (self.path / LOCK).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EnsueError(f"Another process is working on {self.path}.") from None
        if self.finished or self._has_scores():
            self._same_question(asked, resume)
        self.asked = asked

    def _has_scores(self) -> bool:
        """Whether there is work that another run would lose; one refused at the start has none."""
        return self.journal.exists() and self.journal.stat().st_size > 0

    def _same_question(self, asked: dict[str, Any], resume: bool) -> None:
        state = "a finished" if self.finished else "an unfinished"
        if not resume:
            raise EnsueError(
                f"{self.path} holds {state} run; add --resume to use it, or choose another --output."
            )
        try:
            before = json.loads((self.path / RUN).read_text("utf-8")).get("asked", {})
        except ValueError:
            raise EnsueError(f"{self.path / RUN} is not readable JSON; choose another --output.") from None
        then, now = _flat(before), _flat(asked)
        for key in dict.fromkeys([*now, *then]):
            if then.get(key) != now.get(key):
                raise EnsueError(
                    f"{self.path} was run with {key} {_short(then.get(key))}, not {_short(now.get(key))}; "
                    f"choose another --output."
                )

    @property
    def finished(self) -> bool:
        return (self.path / RESULTS).exists()

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON file whole: to a temporary name, then renamed."""
        self._write(name, [json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"])

    def write_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a JSON-lines file whole."""
        self._write(name, (json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))

    def _write(self, name: str, pieces: Iterable[str]) -> None:
        target = self.path / name
        temporary = target.with_name(f".{name}.part")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise EnsueError(
                f"{target} cannot be written: {error.strerror}; finished scores are kept, make room and run "
                f"again with --resume."
            ) from error

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _flat(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, each setting and each part of the model's identity on its own."""
    flat: dict[str, Any] = {}
    for key, value in asked.items():
        if isinstance(value, dict):
            flat |= {f"{key.removeprefix('model_')} {name}": inner for name, inner in value.items()}
        else:
            flat[key] = value
    return flat


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
