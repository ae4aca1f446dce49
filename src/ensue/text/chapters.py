"""What every reader of works makes: a work as its chapters, or the reason why it is left out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ensue.errors import EnsueError

_LONGEST_WRAPPED = 120
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter.

    `heading` is the heading as it stands, its lines divided by line breaks ("CHAPTER III.\\nThe Letter"), empty
    where there is none. `text` is the body: one line a paragraph, a blank line between two.
    """

    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Work:
    """A work with its chapters in order; `empty_chapters` had a heading and no text, and were left out."""

    id: str
    title: str
    chapters: tuple[Chapter, ...]
    empty_chapters: int = 0


class NotUsable(Exception):
    """A work is sound but left out; `reason` is one of few, so that works can be counted by it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def one_line(text: str) -> str:
    """The text with every run of white space made one space.

    >>> one_line(" The  Letter\\n")
    'The Letter'
    """
    return " ".join(text.split())


def joined_paragraphs(text: str) -> str:
    """The text with its hard line breaks joined: one line a paragraph, a blank line between two.

    >>> joined_paragraphs("Rain fell\\non the roof.\\n\\n\\n  She slept.")
    'Rain fell on the roof.\\n\\nShe slept.'
    """
    return "\n\n".join(filter(None, map(one_line, _BLANK_LINES.split(unix_lines(text)))))


def paragraphs_of(text: str) -> str:
    """The text as `joined_paragraphs`, but where it has no blank line and long lines, each line is a paragraph.

    >>> paragraphs_of("Rain fell\\non the roof.")
    'Rain fell on the roof.'
    """
    text = unix_lines(text).strip()
    lines = text.split("\n")
    if len(lines) > 1 and not _BLANK_LINES.search(text) and max(map(len, lines)) > _LONGEST_WRAPPED:
        text = "\n\n".join(lines)
    return joined_paragraphs(text)


def unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def decoded(data: bytes, place: str) -> str:
    """Bytes as text: UTF-8, or Latin-1 where they are not UTF-8, as older Gutenberg files are.

    A byte-order mark is dropped.
    """
    if b"\0" in data:
        raise EnsueError(f"{place} holds a NUL byte, so it is no text in UTF-8: convert it or leave it out.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def make_work(id: str, title: str, chapters: list[Chapter]) -> Work:
    """The work without its chapters that have no text; `NotUsable` where none has any."""
    filled = tuple(chapter for chapter in chapters if chapter.text)
    if not filled:
        raise NotUsable("no text")
    return Work(id, title or id, filled, len(chapters) - len(filled))
