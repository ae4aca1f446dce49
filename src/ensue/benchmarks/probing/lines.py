"""Lines of data files with their numbers, in one of two encodings; every fault names file and line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from ensue.errors import EnsueError, os_errors

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class DataLine(NamedTuple):
    """One line, its number from 1, and the file it stands in."""

    path: Path
    number: int
    text: str

    def refuse(self, what: str) -> NoReturn:
        """Raise one sentence that says where and what."""
        raise EnsueError(f"{self.path}, line {self.number}: {what}.")

    def fields(self, *counts: int) -> list[str]:
        """Divide the line at tabs, into one of the numbers of fields it may have."""
        fields = self.text.split("\t")
        if len(fields) not in counts:
            self.refuse(
                f"there are {len(fields)} columns where {' or '.join(map(str, counts))} were expected"
            )
        return fields

    def sentence(self, text: str) -> str:
        """Return a sentence with single spaces, as both suites hand them to an encoder; an empty one is refused."""
        words = text.split()
        if not words:
            self.refuse("a sentence is empty")
        return " ".join(words)

    def label(self, text: str, known: Sequence[str]) -> int:
        """Return the place of a label among those there are."""
        if text not in known:
            self.refuse(f"the label {text!r} is none of {', '.join(known)}")
        return known.index(text)

    def score(self, text: str, lowest: float, highest: float) -> float:
        """Read a number within a scale."""
        try:
            value = float(text)
        except ValueError:
            self.refuse(f"{text!r} is not a score")
        if not lowest <= value <= highest:
            self.refuse(f"the score {text} is not between {lowest:g} and {highest:g}")
        return value


def read_lines(path: Path, *, latin: bool = False) -> tuple[list[DataLine], bool]:
    """Read the lines of a UTF-8 file, or, where `latin` allows it, of one that is Latin-1 throughout; and say which.

    A line ends at a line feed (with or without a carriage return) and nowhere else: other characters that
    Python would break lines at, such as U+0085, occur within sentences. A Latin-1 file in which some lines
    are valid UTF-8 beyond ASCII mixes the two and is refused.
    """
    with os_errors(path):
        content = path.read_bytes()
    pieces = content.removeprefix(_BYTE_ORDER_MARK).split(b"\n")
    if pieces and not pieces[-1]:
        pieces.pop()
    if not pieces:
        raise EnsueError(f"{path} is empty.")
    undecodable = next((n for n, piece in enumerate(pieces, 1) if not _is_utf8(piece)), None)
    encoding = "utf-8"
    if undecodable is not None:
        encoding = "latin-1"
        if not latin:
            raise EnsueError(f"{path}, line {undecodable}: this is not UTF-8; convert the file first.")
        mixed = next(
            (n for n, piece in enumerate(pieces, 1) if not piece.isascii() and _is_utf8(piece)), None
        )
        if mixed is not None:
            raise EnsueError(f"{path} mixes encodings: line {mixed} is UTF-8, line {undecodable} is not.")
    found = [
        DataLine(path, n, piece.decode(encoding).removesuffix("\r")) for n, piece in enumerate(pieces, 1)
    ]
    return found, encoding == "latin-1"


def _is_utf8(piece: bytes) -> bool:
    try:
        piece.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
