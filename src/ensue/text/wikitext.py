"""WikiText files (WikiText-2, WikiText-103): articles divided by ` = Heading = ` lines, one paragraph a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ensue.errors import EnsueError
from ensue.text.sections import Event, Heading

_HEADING = re.compile(r"((?:= )+)(\S.*?)((?: =)+)")
_JOINED = re.compile(r" @([-.,])@ ")
_CLOSING = re.compile(r" ([.,;:!?%)\]}]|'(?:s|re|ve|ll|d|m)\b|n't\b)")
_OPENING = re.compile(r"([(\[{$£€]) ")
_QUOTED = re.compile(r'" ([^"]*?) "')


def read_wikitext(path: Path) -> Iterator[tuple[str, str, list[Event]]]:
    """Place, title and events of every article, one article held at a time."""
    title, place, events = "", f"{path}, line 1", list[Event]()
    empty = True
    for number, line, lone in _lines(path):
        heading = parse_heading(line) if lone else None
        if heading is not None and heading.rank == 1:
            if title or events:
                yield place, title, events
            title, place, events = heading.title, f"{path}, line {number}", []
            empty = False
        elif heading is not None:
            events.append(heading)
        elif line:
            events.append(detokenised(line))
            empty = False
    if empty:
        raise EnsueError(f"{path} is empty: leave it out, or fetch it again.")
    if title or events:
        yield place, title, events


def parse_heading(line: str) -> Heading | None:
    """The heading a stripped line is, if as many marks stand before its title as after it.

    >>> parse_heading("= = Early life = =")
    Heading(rank=2, title='Early life')
    """
    found = _HEADING.fullmatch(line)
    if found is None or found[1].count("=") != found[3].count("="):
        return None
    return Heading(found[1].count("="), detokenised(found[2]))


def detokenised(text: str) -> str:
    """The text with its tokens put together again as print has them, as far as that is certain.

    >>> detokenised('It was " two @-@ part " ( 1 @.@ 5 m ) , the town \\'s first .')
    'It was "two-part" (1.5 m), the town\\'s first.'
    """
    text = _QUOTED.sub(r'"\1"', _JOINED.sub(r"\1", text))
    return _OPENING.sub(r"\1", _CLOSING.sub(r"\1", text))


def _lines(path: Path) -> Iterator[tuple[int, str, bool]]:
    """Numbered, stripped lines, each with whether it stands between blank ones, as every heading does."""
    before, waiting = "", ""
    number = 0
    try:
        with path.open("rb") as file:
            for number, data in enumerate(file, 1):
                line = _decoded(data, path, number).strip()
                if number > 1:
                    yield number - 1, waiting, not before and not line
                before, waiting = waiting, line
    except OSError as error:
        raise EnsueError(f"{path} could not be read: {error.strerror or error}.") from error
    if number:
        yield number, waiting, not before


def _decoded(data: bytes, path: Path, number: int) -> str:
    if b"\0" in data:
        raise EnsueError(f"{path}, line {number} holds a NUL byte, so it is UTF-16 or no text.")
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise EnsueError(
            f"{path}, line {number} is not UTF-8 (byte {error.start} of the line): convert it to UTF-8."
        ) from error
