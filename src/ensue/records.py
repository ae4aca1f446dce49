"""Finished work on disk: an append-only file of keyed lines with a checksum each, from which a killed run goes on.

One file serves several uses (scores, questions and answers, classifiers, texts); each says with a `Codec` under which
name its lines go and how a value becomes JSON:

    TEXTS = plain("texts")
    with Records(path) as records:
        if not records.has(TEXTS, key):
            records.add(TEXTS, [(key, value)])
        records.get(TEXTS, key)

A key must hold everything that changes a value (use `digest_of`), so that a record only ever answers the question
it was made for. A line that is damaged is dropped, counted in `damaged` and said on standard error; the others stay.
What a kill leaves of the last line is cut off. A file that is something else is left as it is. Without a path the
file is a temporary one without a name. Memory holds where each line lies and no more: a million are 150 MB.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ensue.atomic import make_folders, remove_empty
from ensue.errors import EnsueError, os_errors
from ensue.shelf import nameless_file

T = TypeVar("T")

# What a run that met damaged lines says among its notes.
DAMAGED = "damaged records of finished work, dropped and done again"
_START = b'["ensue","'
# Bytes of a line that are read at once: most have fewer.
_CHUNK = 1024
_STRING = rb'"(?:[^"\\]|\\.)*"'
# ["ensue",CHECKSUM,USE,KEY,VALUE], the checksum that of all that follows it.
_LINE = re.compile(
    re.escape(_START) + rb'([0-9a-f]{8})",(?=(' + _STRING + rb"),(" + _STRING + rb"),(.*)\]\n)"
)


@dataclass(frozen=True)
class Codec(Generic[T]):
    """How a use keeps its values: the name of its lines, and the way to JSON and back.

    Where a value is written differently than before, the name must change too.
    """

    use: str
    to_json: Callable[[T], Any]
    from_json: Callable[[Any], T]


def plain(use: str) -> Codec[Any]:
    """Return a codec of values that are JSON already."""
    return Codec(use, lambda value: value, lambda value: value)


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with os_errors(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(*facts: Any) -> str:
    """Return a key made of facts that can be written as JSON."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


class Records:
    """The file, held against other processes while it is open; one into which nothing was put is removed again."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.damaged = 0
        # By use and the hash of a key, where its line begins; the line says whether it is of that key.
        self._places: dict[str, dict[int, int]] = {}
        self._size = 0
        self._made: list[Path] = []
        self._file: FileIO | None = nameless_file() if path is None else self._open(path)
        if self.damaged:
            lines = "1 line was" if self.damaged == 1 else f"{self.damaged:,} lines were"
            print(
                f"{path}: {lines} damaged and dropped; {len(self):,} are kept.", file=sys.stderr, flush=True
            )

    def _open(self, path: Path) -> FileIO:
        if path.exists() and not path.is_file():
            raise EnsueError(f"{path} is not a file, so it cannot hold finished work.")
        file = None
        try:
            self._made = make_folders(path.parent)
            file = open_locked(path)
            self._size = self._load(path)
            file.truncate(self._size)
        except BlockingIOError:
            raise EnsueError(f"Another process is writing to {path}.") from None
        except OSError as error:
            remove_empty(self._made)
            raise EnsueError(f"{path} cannot be written: {error.strerror}.") from error
        except EnsueError:
            if file is not None:
                file.close()
            raise
        return file

    def _load(self, path: Path) -> int:
        """Take in the records; return the bytes they fill, damaged lines included and a torn last one not."""
        whole = 0
        uses: dict[bytes, str] = {}
        with path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
                found = _LINE.match(line)
                if found is None or zlib.crc32(line[found.end() :]) != int(found[1], 16):
                    self.damaged += 1
                    continue
                if found[2] not in uses:
                    uses[found[2]] = json.loads(found[2])
                self._places.setdefault(uses[found[2]], {})[hash(json.loads(found[3]))] = whole - len(line)
        if not len(self) and not _is_ours(path):
            raise EnsueError(
                f"{path} holds no finished work that this version of Ensue can read, so it was left as it is; name "
                f"another file."
            )
        return whole

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def count(self, codec: Codec[Any]) -> int:
        """Return how many records of one use there are."""
        return len(self._places.get(codec.use, ()))

    def has(self, codec: Codec[Any], key: str) -> bool:
        return self._value(codec.use, key) is not None

    def get(self, codec: Codec[T], key: str) -> T | None:
        """Return the value under a key, None where there is none; of several lines with the key, the last."""
        value = self._value(codec.use, key)
        return None if value is None else codec.from_json(json.loads(value))

    def _value(self, use: str, key: str) -> bytes | None:
        """Return the value under a key as it is written."""
        place = self._places.get(use, {}).get(hash(key))
        if place is None:
            return None
        found = _LINE.match(self._line_at(place))
        # Two keys may have one hash; the earlier one's work is then done again.
        return found[4] if found is not None and json.loads(found[3]) == key else None

    def _line_at(self, place: int) -> bytes:
        if self._file is None:
            assert self.path is not None  # what has no name is never closed before it is forgotten
            with self.path.open("rb", buffering=0) as file:
                return _read_line(file.fileno(), place)
        return _read_line(self._file.fileno(), place)

    def add(self, codec: Codec[T], records: Iterable[tuple[str, T]]) -> None:
        """Append a batch and hand it to the operating system."""
        places, lines = {}, []
        use = json.dumps(codec.use).encode()
        end = self._size
        for key, value in records:
            written = json.dumps(codec.to_json(value), separators=(",", ":")).encode()
            lines.append(_line(use, key, written))
            places[hash(key)] = end
            end += len(lines[-1])
        if self._file is None:
            raise ValueError(f"{self.path} is closed, so nothing can be added to it.")
        self._write(self._file, b"".join(lines))
        self._places.setdefault(codec.use, {}).update(places)

    def _write(self, file: FileIO, lines: bytes) -> None:
        left = memoryview(lines)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            # Whole lines stay; half a line must not stand before what is added next.
            self._size += lines.rfind(b"\n", 0, len(lines) - len(left)) + 1
            with suppress(OSError):
                file.truncate(self._size)
            raise EnsueError(
                f"{self.path} cannot be written: {error.strerror}; finished work is kept, make room and go on (a run "
                f"with --resume)."
            ) from error
        self._size += len(lines)

    def close(self) -> None:
        """Have all of it on the disk and let other processes at the file."""
        if self._file is None or self.path is None:
            return
        file, self._file = self._file, None
        try:
            if self._size:
                os.fsync(file.fileno())
            else:
                self.path.unlink(missing_ok=True)
                remove_empty(self._made)
        finally:
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _read_line(file: int, place: int) -> bytes:
    line = os.pread(file, _CHUNK, place)
    while b"\n" not in line:
        more = os.pread(file, 16 * _CHUNK, place + len(line))
        if not more:
            break
        line += more
    return line[: line.find(b"\n") + 1]


def _is_ours(path: Path) -> bool:
    """Return whether a file without a good line is one that a kill or a flipped byte left so."""
    with path.open("rb") as file:
        start = file.read(len(_START))
    if len(start) < len(_START):
        return _START.startswith(start)
    return sum(a != b for a, b in zip(start, _START, strict=True)) <= 1


def _line(use: bytes, key: str, value: bytes) -> bytes:
    checked = b"%b,%b,%b]\n" % (use, json.dumps(key).encode(), value)
    return b'%b%08x",%b' % (_START, zlib.crc32(checked), checked)


def open_locked(path: Path) -> FileIO:
    """Open a file to append, locked against other processes; BlockingIOError where one of them has it."""
    while True:
        # Unbuffered: what could not be written must not be tried again when the file is closed.
        file = path.open("a+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another process may have removed the file, empty, between the opening and the lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    return file
        except BaseException:
            file.close()
            raise
        file.close()
