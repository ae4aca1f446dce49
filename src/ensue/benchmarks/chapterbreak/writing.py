"""Writing ChapterBreak data in its published format, work by work, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from ensue.benchmarks.chapterbreak.data import Example


class DataWriter:
    """A data file that grows by one work at a time and gets its name when it is complete.

    The works of a split are written one after another; works of one split after those of another are an error
    of the caller. Leaving the `with` block by an exception leaves nothing behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sha256 = ""
        self.examples = 0
        self._part = path.with_name(f".{path.name}.part")
        self._file: IO[bytes] = self._part.open("wb")
        self._digest = hashlib.sha256()
        self._splits: list[str] = []
        self._works = 0
        self._put("{")

    def add(self, split: str, work: str, examples: Sequence[Example]) -> None:
        """The examples of one work, which are all of its examples."""
        if not self._splits or split != self._splits[-1]:
            if split in self._splits:
                raise ValueError(f"Split {split} was closed when {self._splits[-1]} was begun.")
            self._put(f"{'},' if self._splits else ''}\n{_json(split)}: {{")
            self._splits.append(split)
            self._works = 0
        rows = [{"ctx": e.context, "pos": e.gold, "negs": list(e.negatives)} for e in examples]
        self._put(f"{',' if self._works else ''}\n{_json(work)}: {_json(rows)}")
        self._works += 1
        self.examples += len(rows)

    def finish(self) -> None:
        """Close the file and give it its name."""
        self._put(f"{'}' if self._splits else ''}\n}}\n")
        self._file.close()
        self._part.replace(self.path)
        self.sha256 = self._digest.hexdigest()

    def discard(self) -> None:
        """Close the file and remove what has no name yet."""
        self._file.close()
        self._part.unlink(missing_ok=True)

    def __enter__(self) -> DataWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.discard()

    def _put(self, text: str) -> None:
        # Half of a surrogate pair has no UTF-8; written as its escape it is what JSON calls it anyway.
        content = text.encode("utf-8", "backslashreplace")
        self._digest.update(content)
        self._file.write(content)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
