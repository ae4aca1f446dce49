"""A work of fiction as its chapters, and where its text was found."""

from __future__ import annotations

from dataclasses import dataclass


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
    """A work with its chapters in order."""

    id: str
    title: str
    chapters: tuple[Chapter, ...]
