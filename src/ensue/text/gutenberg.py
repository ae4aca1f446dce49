"""Plain texts as Project Gutenberg offers them: the licence taken off, and the rest cut into chapters."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from ensue.text.chapters import (
    Chapter,
    NotUsable,
    Work,
    decoded,
    joined_paragraphs,
    make_work,
    one_line,
    unix_lines,
)
from ensue.text.finding import find_chapters

Headings = Literal["paper", "robust"]

_HEADER_ENDS = re.compile(
    r"^[ \t]*\*{3}[ \t]*START OF (?:THE|THIS) PROJECT GUTENBERG[^*]*(?:\*{3})?.*$"
    r"|^.*\*[ \t]*END[ \t*]*THE SMALL PRINT!.*$",
    re.IGNORECASE | re.MULTILINE,
)
_FOOTER_BEGINS = re.compile(
    r"^[ \t]*\*{3}[ \t]*END OF (?:THE|THIS) PROJECT GUTENBERG"
    r"|^[ \t]*\*{0,3}[ \t]*End of (?:the |this )?Project Gutenberg(?:[’']?s)?\b"
    r"|^[ \t]*\*{3}[ \t]*START: FULL LICEN[SC]E",
    re.IGNORECASE | re.MULTILINE,
)
_TITLE = re.compile(r"^Title:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(
    r"\s*(?:\[?[ \t]*Transcriber[’']?s?[’']? notes?\b"
    r"|(?:[*_][ \t]*)*(?:Produced|Prepared|Transcribed|Scanned|Digiti[sz]ed|Proofread|Typed|Updated|HTML version)"
    r" (?:and .* )?(?:by|from)\b"
    r"|E-?text (?:prepared|produced|scanned|typed) by\b"
    r"|This e-?(?:text|book) was\b"
    r"|Note: (?:Project Gutenberg|Images)\b)",
    re.IGNORECASE,
)


def read_gutenberg(data: bytes, place: str, id: str, headings: Headings) -> Work:
    """A work from the bytes of a text file, UTF-8 or, where they are not UTF-8, Latin-1."""
    text = unix_lines(decoded(data, place))
    if not text.strip():
        raise NotUsable("no text")
    body, title = without_licence(text)
    split: Callable[[str], list[Chapter]] = paper_chapters if headings == "paper" else find_chapters
    chapters = split(body)
    if not chapters:
        raise NotUsable("no chapter headings")
    return make_work(id, title, chapters)


def without_licence(text: str) -> tuple[str, str]:
    """The text between Gutenberg's header and footer, and the title that the header states, if it does.

    Who produced the file is taken off too where it stands right below the header. A text with neither header nor
    footer is left as it is.

    >>> without_licence("Rain fell.")
    ('Rain fell.', '')
    """
    title = ""
    headers = [found for found in _HEADER_ENDS.finditer(text) if found.start() < len(text) / 2]
    if headers:
        stated = _TITLE.search(text, 0, headers[-1].start())
        title = one_line(stated[1]) if stated else ""
        text = _without_credits(text[headers[-1].end() :])
    for footer in _FOOTER_BEGINS.finditer(text):
        if footer.start() > len(text) / 2 or headers:
            text = text[: footer.start()]
            break
    return text, title


def _without_credits(text: str) -> str:
    """The text without the paragraphs at its head that say who produced the file."""
    while _CREDITS.match(text):
        _, _, text = text.lstrip().partition("\n\n")
    return text


def paper_chapters(text: str) -> list[Chapter]:
    """The chapters by the rule of the paper: every line that begins with "chapter", in any case, starts one.

    The rule also takes a line of running text that happens to begin so. What stands before the first such line is
    dropped.

    >>> [chapter.heading for chapter in paper_chapters("Preface\\nCHAPTER I\\n\\nRain.\\nchapter and verse\\nWind.")]
    ['CHAPTER I', 'chapter and verse']
    """
    chapters: list[Chapter] = []
    heading: str | None = None
    lines: list[str] = []
    for line in [*text.split("\n"), "chapter"]:
        if line[:7].lower() != "chapter":
            lines.append(line)
            continue
        if heading is not None:
            chapters.append(Chapter(heading, joined_paragraphs("\n".join(lines))))
        heading, lines = one_line(line), []
    return [chapter for chapter in chapters if chapter.text]
