"""A sequence that lies on disk: for what there may be more of than memory holds."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from io import FileIO
from itertools import chain
from typing import Any, TypeVar, overload

T = TypeVar("T")

# Bytes that are held before they are written: what is no more than that makes no file.
_HELD = 2**20
# Things that are read at once by whoever goes through all.
_AT_ONCE = 64


def nameless_file() -> FileIO:
    """Open a file without a name, which is gone when nobody has it any more."""
    with tempfile.TemporaryFile(buffering=0) as named:
        number = os.dup(named.fileno())
    file = FileIO(number, "r+b", closefd=False)
    weakref.finalize(file, os.close, number)
    return file


class Shelf(Sequence[T]):
    """Things in a file without a name; memory holds eight bytes for each, and the last few.

    What is taken from it is a copy, made anew each time.

    >>> shelf = Shelf(["one", "two"])
    >>> shelf.append("three")
    >>> shelf[1], list(shelf)
    ('two', ['one', 'two', 'three'])
    """

    def __init__(self, things: Iterable[T] = ()) -> None:
        self._ends = array("Q", [0])
        self._file: FileIO | None = None
        self._written = 0
        self._held = bytearray()
        self.extend(things)

    def append(self, thing: T) -> None:
        self._held += pickle.dumps(thing, pickle.HIGHEST_PROTOCOL)
        self._ends.append(self._written + len(self._held))
        if len(self._held) >= _HELD:
            self._put_away()

    def extend(self, things: Iterable[T]) -> None:
        for thing in things:
            self.append(thing)

    def _put_away(self) -> None:
        if self._file is None:
            self._file = nameless_file()
        left = memoryview(bytes(self._held))
        while left:
            left = left[self._file.write(left) :]
        self._written += len(self._held)
        self._held.clear()

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        one = range(len(self))[place]
        found: T = pickle.loads(self._bytes(self._ends[one], self._ends[one + 1]))
        return found

    def __iter__(self) -> Iterator[T]:
        place = 0
        while place < len(self):
            end = min(place + _AT_ONCE, len(self))
            begin = self._ends[place]
            several = memoryview(self._bytes(begin, self._ends[end]))
            for one in range(place, end):
                yield pickle.loads(several[self._ends[one] - begin : self._ends[one + 1] - begin])
            place = end

    def _bytes(self, begin: int, end: int) -> bytes:
        found = b""
        while self._file is not None and begin + len(found) < min(end, self._written):
            found += os.pread(
                self._file.fileno(), min(end, self._written) - begin - len(found), begin + len(found)
            )
        rest = max(begin - self._written, 0)
        return found + bytes(self._held[rest : max(end - self._written, 0)])

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class Joined(Collection[T]):
    """Sequences one after the other, gone through as if they were one."""

    def __init__(self, sequences: Iterable[Sequence[T]]) -> None:
        self._sequences = list(sequences)

    def __len__(self) -> int:
        return sum(map(len, self._sequences))

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._sequences)

    def __contains__(self, thing: object) -> bool:
        return any(thing in sequence for sequence in self._sequences)
