"""A run folder: opened once, written whole or not at all, and continued only by the same question."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any

from ensue.atomic import make_folders, remove_empty, write_json, write_json_lines
from ensue.benchmarks.base import KEPT
from ensue.errors import EnsueError
from ensue.records import open_locked

RUN, ITEMS, RESULTS, JOURNAL = "run.json", "items.jsonl", "results.json", "journal.jsonl"
LOCK = ".lock"


class RunFolder:
    """The folder of one run, locked while open; one in which no work was done leaves nothing behind."""

    def __init__(self, path: Path, asked: Mapping[str, Any], *, resume: bool) -> None:
        self.path = path
        self._made: list[Path] = []
        self._lock: FileIO | None = None
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
        self._made = make_folders(self.path)
        if not (self.path / RUN).exists() and any(self._work()):
            raise EnsueError(f"{self.path} is not empty and holds no run; choose another --output.")
        try:
            self._lock = open_locked(self.path / LOCK)
        except BlockingIOError:
            raise EnsueError(f"Another process is working on {self.path}.") from None
        if any(self._work()):
            self._same_question(asked)
            if not (self.finished or resume):
                raise EnsueError(
                    f"{self.path} holds an unfinished run of this; add --resume (in Python: resume=True) to go on "
                    f"with it, or choose another --output."
                )
        self.asked = asked

    def _work(self) -> Iterator[Path]:
        """Yield what is in the folder that another run would lose; one refused at the start has left none."""
        for path in self.path.iterdir():
            part = path.name.startswith(".") and path.name.endswith(".part")
            empty = path.name == JOURNAL and path.stat().st_size == 0
            if path.name not in (RUN, LOCK) and not part and not empty:
                yield path

    def _same_question(self, asked: dict[str, Any]) -> None:
        try:
            about = json.loads((self.path / RUN).read_text("utf-8"))
        except ValueError:
            raise EnsueError(f"{self.path / RUN} is not readable JSON; choose another --output.") from None
        before = about.get("asked", {}) if isinstance(about, dict) else None
        if not isinstance(before, dict):
            raise EnsueError(f"{self.path / RUN} does not say what was asked; choose another --output.")
        state = "a finished" if self.finished else "an unfinished"
        then, now = _flat(before), _flat(asked)
        for key in dict.fromkeys([*now, *then]):
            if then.get(key) != now.get(key):
                if key == "identity behaviour":
                    raise EnsueError(
                        f"{self.path} holds {state} run of the model that answered at {now.get('identity endpoint')} "
                        f"then, which gives short texts other log-probabilities than the one that answers there now; "
                        f"serve that model again, or choose another --output."
                    )
                raise EnsueError(
                    f"{self.path} holds {state} run with {key} {_short(then.get(key))}, not {_short(now.get(key))}; "
                    f"choose another --output."
                )

    @property
    def finished(self) -> bool:
        return (self.path / RESULTS).exists()

    @property
    def journal(self) -> Path:
        return self.path / JOURNAL

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write a JSON file atomically."""
        self._write(write_json, name, value)

    def write_lines(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write a JSON-lines file atomically."""
        self._write(write_json_lines, name, rows)

    def _write(self, write: Callable[[Path, Any], Path], name: str, content: Any) -> None:
        try:
            write(self.path / name, content)
        except EnsueError as error:
            if not isinstance(error.__cause__, OSError):
                raise
            words = str(error).rstrip(".")
            raise EnsueError(
                f"{words}; finished work is kept, make room and run again with --resume."
            ) from error.__cause__

    def clean(self) -> None:
        """Remove what was kept to go on with, once the results are in place and hold all of it."""
        assert self.finished, "until the results are in place, the work is in these files only"
        for path in [self.journal, *self.path.glob(f"{KEPT}*")]:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._lock is not None:
            if not any(self._work()):
                for path in [*self.path.glob(".*.part"), self.journal, self.path / RUN, self.path / LOCK]:
                    path.unlink(missing_ok=True)
            self._lock.close()
            self._lock = None
        remove_empty(self._made)


def _flat(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked, each setting and each part of the model's identity on its own."""
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
