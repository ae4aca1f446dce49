"""What is wrong with a submission: every problem with its file and line, so many a file, and the rest counted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from ensue.errors import EnsueError

# So many problems of one file are kept in words; who made the same mistake in every line need not read each.
PER_FILE = 20


class Problem(NamedTuple):
    """One thing that is wrong; `file` is empty for the archive itself, `line` is 0 for a whole file."""

    file: str
    line: int
    words: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.words}" if where else self.words


class Problems:
    """A list that grows to a bound: the first problems of each file in words, the others as a number."""

    def __init__(self, per_file: int = PER_FILE) -> None:
        self._per_file = per_file
        self._kept: dict[str, list[Problem]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, file: str, line: int, words: str) -> None:
        kept = self._kept.setdefault(file, [])
        self._counts[file] += 1
        if len(kept) < self._per_file:
            kept.append(Problem(file, line, words))

    def count(self, file: str | None = None) -> int:
        return self._counts.total() if file is None else self._counts[file]

    def listed(self) -> list[Problem]:
        """All that was kept, those of the archive first, then file by file as they came."""
        found: list[Problem] = []
        for file in sorted(self._kept, key=bool):
            found += self._kept[file]
            if more := self._counts[file] - len(self._kept[file]):
                found.append(
                    Problem(file, 0, f"and {more:,} more such lines." if file else f"and {more:,} more.")
                )
        return found


class Refused(EnsueError):
    """A submission that is not graded; `problems` says everything that was found."""

    def __init__(self, archive: Path | str, problems: list[Problem], count: int | None = None) -> None:
        self.archive, self.problems = Path(archive), problems
        self.count = len(problems) if count is None else count
        noun, them = ("problem", "it") if self.count == 1 else ("problems", "them")
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(
            f"{archive} is refused for {self.count:,} {noun}; mend {them} and grade again.{lines}"
        )
