"""A stranger's file, line by line: hard limits on what is read, and a bounded list of what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from ensue.errors import EnsueError

# So many problems of one file are kept in words; who made the same mistake in every line need not read each.
PER_FILE = 20
_CHUNK = 1 << 16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Problem(NamedTuple):
    """One thing that is wrong; `file` is empty for an archive itself, `line` is 0 for a whole file."""

    file: str
    line: int
    problem: str

    def __str__(self) -> str:
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{where}: {self.problem}" if where else self.problem


class Problems:
    """A list that grows to a bound: the first problems of each file in words, the others as a number."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Problem]] = {}
        self._counts: Counter[str] = Counter()

    def add(self, file: str, line: int, problem: str) -> None:
        kept = self._kept.setdefault(file, [])
        self._counts[file] += 1
        if len(kept) < PER_FILE:
            kept.append(Problem(file, line, problem))

    def count(self, file: str | None = None) -> int:
        return self._counts.total() if file is None else self._counts[file]

    def listed(self) -> list[Problem]:
        """Return all that was kept, those of the archive first, then file by file as they came."""
        found: list[Problem] = []
        for file in sorted(self._kept, key=bool):
            found += self._kept[file]
            if more := self._counts[file] - len(self._kept[file]):
                found.append(Problem(file, 0, f"and {more:,} more{' such lines' if file else ''}."))
        return found


class Refused(EnsueError):
    """A submission that is not graded; `problems` says everything that was found."""

    def __init__(self, file: Path, problems: Problems) -> None:
        self.file, self.problems, self.count = file, problems.listed(), problems.count()
        noun, them = ("problem", "it") if self.count == 1 else ("problems", "them")
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        super().__init__(f"{file} is refused for {self.count:,} {noun}; mend {them} and grade again.{lines}")


@dataclass(frozen=True)
class Limits:
    """How much of a submission is read. The largest official file, QQP's, is 7 MB; ReCoRD's lines are short."""

    archive_bytes: int = 128 << 20
    directory_bytes: int = 1 << 20
    entries: int = 64
    file_bytes: int = 64 << 20
    total_bytes: int = 256 << 20
    line_bytes: int = 1 << 20


class Stop(Exception):
    """Reading a file ends here; the words say why."""


class LineCutter:
    """Cuts streams into lines under limits; what all streams may hold together is counted down."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._left = limits, limits.total_bytes

    def lines(self, name: str, stream: IO[bytes], problems: Problems) -> Iterator[tuple[int, bytes]]:
        """Return numbered lines, without a byte-order mark, up to the first that cannot be had."""
        number = 0
        try:
            for line in self._cut(stream):
                number += 1
                yield number, line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        except Stop as stop:
            problems.add(name, number + 1, str(stop))

    def _cut(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Return lines of a stream; at no time is more held than a line and a chunk."""
        limits, size, rest = self._limits, 0, b""
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            self._left -= len(chunk)
            if size > limits.file_bytes:
                raise Stop(f"the file is longer than {limits.file_bytes:,} bytes; it was not read further.")
            if self._left < 0:
                raise Stop(f"the files together are longer than {limits.total_bytes:,} bytes; reading ended.")
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole
            if len(rest) > limits.line_bytes:
                raise Stop(
                    f"the line is longer than {limits.line_bytes:,} bytes; the file was not read further."
                )
        if rest:
            yield rest
