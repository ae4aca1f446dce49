"""A file of profiles, one JSON object a line, that grows as they are made and from which a killed run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any, Self

from ensue.errors import EnsueError
from ensue.jsonl import parse_line
from ensue.records import open_locked

# A row's, as `Profile.row` has it: what begins otherwise is no part of one, and not ours to replace.
_BEGINNING = b'{"id": '


class ProfileFile:
    """The file, held against other processes while it is open; nothing but whole lines is ever kept in it.

    Each line is a row with the `key` of its text, which holds everything the row depends on.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_file():
            raise EnsueError(f"{path} is not a file, so profiles cannot be written to it.")
        try:
            self._file: FileIO = open_locked(path)
        except BlockingIOError:
            raise EnsueError(f"Another process is writing to {path}.") from None
        except OSError as error:
            raise EnsueError(f"{path} cannot be written: {error.strerror}.") from error
        self._size = 0

    def rows(self) -> Iterator[dict[str, Any]]:
        """Read the rows, one held at a time; what a kill has left of the last one is passed over."""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if not line.endswith(b"\n"):
                    if not line.startswith(_BEGINNING):
                        raise self.refuse()
                    break
                row = parse_line(line, f"{self.path}, line {number}")
                self._size += len(line)
                yield row

    def refuse(self) -> EnsueError:
        """Return the error about rows that were made of something else."""
        return EnsueError(
            f"{self.path} holds profiles of other texts, of another model or of other settings (or none), so it was "
            f"left as it is; name another file."
        )

    def add(self, row: dict[str, Any]) -> None:
        """Append a row and hand it to the operating system; all that `rows` has must have been read."""
        line = json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        try:
            self._file.truncate(self._size)
            left = memoryview(line)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            raise EnsueError(
                f"{self.path} cannot be written: {error.strerror}; what is finished is kept, make room and run the "
                f"same command again."
            ) from error
        self._size += len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            if os.fstat(self._file.fileno()).st_size:
                os.fsync(self._file.fileno())
            else:
                self.path.unlink(missing_ok=True)
        finally:
            self._file.close()
