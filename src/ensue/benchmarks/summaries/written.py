"""The texts a model has written so far in a run, one JSON line each, so that a killed run goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ensue.benchmarks.probing.finished import FinishedFolder
from ensue.errors import EnsueError


class WrittenTexts(FinishedFolder):
    """Texts by id, each good only for the question with this `key`; a line torn by a kill is dropped."""

    def __init__(self, folder: Path | None, question: dict[str, Any], task: str) -> None:
        super().__init__(folder, question, ".jsonl")
        self._path = self.path(task, None)
        self._texts: dict[str, str] = {}
        if self._path is not None and self._path.is_file():
            self._texts = dict(_read(self._path, self.key))
            # Only whole lines that answer this question are kept: what is added must not follow half a line.
            self._write(self._path, "".join(_line(self.key, *pair) for pair in self._texts.items()), "w")

    def __len__(self) -> int:
        return len(self._texts)

    def get(self, name: str) -> str | None:
        return self._texts.get(name)

    def add(self, texts: Iterable[tuple[str, str]]) -> None:
        """Keep some more."""
        new = dict(texts)
        self._texts.update(new)
        if self._path is not None:
            self._write(self._path, "".join(_line(self.key, *pair) for pair in new.items()), "a")

    @staticmethod
    def _write(path: Path, lines: str, mode: str) -> None:
        try:
            with path.open(mode, encoding="utf-8", errors="backslashreplace") as file:
                file.write(lines)
        except OSError as error:
            raise EnsueError(
                f"{path} cannot be written: {error.strerror}; what was written is kept, make room and run again "
                f"with --resume."
            ) from error


def _line(key: str, name: str, text: str) -> str:
    return json.dumps([key, name, text]) + "\n"


def _read(path: Path, key: str) -> Iterable[tuple[str, str]]:
    for line in path.read_text("utf-8", "replace").splitlines():
        try:
            found, name, text = json.loads(line)
        except (ValueError, TypeError):
            continue
        if found == key and isinstance(name, str) and isinstance(text, str):
            yield name, text
