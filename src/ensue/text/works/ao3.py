"""Read stories of the Archive of Our Own, from JSON, text or HTML dumps, filtered as ChapterBreak filters them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any, NamedTuple

from ensue.errors import EnsueError
from ensue.jsonl import in_words, parse_line
from ensue.text.sentences import one_line
from ensue.text.works.chapters import (
    Chapter,
    NotUsable,
    Work,
    decoded,
    heading_lines,
    make_work,
    paragraphs_of,
    stated_id,
    string,
    unix_lines,
)
from ensue.text.works.headings import parse_heading

FEWEST_WORDS = 10_000
MORE_CHAPTERS_THAN = 10

_ENGLISH = re.compile(r"english\b.*|en|eng|en[-_]\w+", re.IGNORECASE)
_GENERAL = re.compile(r"general(?: audiences?)?|g", re.IGNORECASE)
_KEY = re.compile(r"[ \t]*[*_]*(?P<key>[A-Z][\w '’/-]{0,30})[*_]*:[*_]*[ \t]*(?P<value>.*)")
_MARK = re.compile(
    r"[ \t>]*[*_]*(?:notes for the chapter|summary for the chapter|author[’']?s notes?)[ \t]*:?[ \t]*[*_]*[ \t]*:?"
    r"[ \t]*[*_]*(?P<rest>.*)",
    re.IGNORECASE,
)
_BODIES = ("text", "body", "content", "story")
_BLOCKS = frozenset(
    {"p", "div", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "li", "hr", "tr", "dd", "dt", "pre"}
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_UNSEEN = frozenset({"script", "style", "head"})
_NOTES = frozenset({"chapter notes", "chapter summary", "chapter end notes", "notes", "summary", "end notes"})


def read_ao3_json(data: bytes, place: str, id: str) -> Work:
    """Read a story from one JSON object; the names of its columns may be in any case."""
    columns = {name.lower(): value for name, value in parse_line(data, place).items()}
    chapters = _json_chapters(columns, place)
    tags = {name: _first(columns.get(name), place) for name in ("language", "rating")}
    return _filtered(stated_id(columns, place) or id, string(columns, ("title",), place), tags, chapters)


def read_ao3_text(data: bytes, place: str, id: str) -> Work:
    """Read a story from a text file: "Key: value" lines, then chapters headed "Chapter 3: The Letter" or the like."""
    text = unix_lines(decoded(data, place))
    tags = _header(text)
    return _filtered(id, tags.get("title", ""), tags, cut(text))


def read_ao3_html(data: bytes, place: str, id: str) -> Work:
    """Read a story from a page as the archive itself lets one download it.

    Within the element with the id "chapters", an `<h2 class="heading">` begins a chapter; blocks of the class "meta"
    hold headings, notes and summaries, and so does a quotation below a line such as "Chapter Notes".
    """
    page = _StoryParser()
    page.feed(decoded(data, place))
    page.close()
    page.end_block()
    chapters = [
        Chapter(heading, without_notes("\n\n".join(text))) for heading, text in page.chapters if any(text)
    ]
    return _filtered(id, page.title, page.tags, chapters)


def cut(text: str) -> list[Chapter]:
    """Split a text where a line such as "## Chapter 3" begins a chapter; all of it is one where none does."""
    chapters: list[tuple[str, list[str]]] = [("", [])]
    lines = text.split("\n")
    for place, line in enumerate(lines):
        alone = place == 0 or not lines[place - 1].strip()
        mark = parse_heading(line) if alone and len(line) < 200 else None
        if mark and mark.label == "chapter":
            chapters.append((one_line(line.strip(" \t#*_")), []))
        else:
            chapters[-1][1].append(line)
    # What stands before the first heading is the header and the story's own summary.
    marked = chapters[1:] or chapters
    return [Chapter(heading, without_notes("\n".join(body))) for heading, body in marked]


def without_notes(text: str) -> str:
    """Remove the ranges of notes and summaries that the paper removes from a chapter's paragraphs.

    A range is opened by a line that begins with "Notes for the Chapter:", "Summary for the Chapter:" or "Author's
    Note:" (bold or not) and ends with its paragraph; where nothing but the mark stands in that paragraph, with the
    next one; where that is quoted with ">", with the last paragraph quoted so. Other comments in the text stay.

    >>> without_notes("**Author's Note:** Thanks!\\n\\nRain fell.\\n\\n(Sorry.)")
    'Rain fell.\\n\\n(Sorry.)'
    """
    kept: list[str] = []
    waiting = quoted = False
    for paragraph in re.split(r"\n[^\S\n]*\n\s*", unix_lines(text).strip()):
        is_quote = paragraph.lstrip().startswith(">")
        lines = paragraph.split("\n")
        opened = next((place for place, line in enumerate(lines) if is_mark(line)), None)
        if opened is not None:
            kept.append("\n".join(lines[:opened]))
            found = _MARK.fullmatch(lines[opened])
            waiting = not (found and found["rest"].strip(" *_>")) and opened + 1 == len(lines)
            quoted = not waiting and is_quote
        elif waiting:
            waiting, quoted = False, is_quote
        elif not (quoted and is_quote):
            quoted = False
            kept.append(paragraph)
    return paragraphs_of("\n\n".join(each for each in kept if each.strip()))


def is_mark(line: str) -> bool:
    """Return whether a line opens a range of notes; without a colon or bold it is a part of the story."""
    found = _MARK.fullmatch(line)
    return found is not None and any(each in line[: found.start("rest")] for each in (":", "**", "__"))


def _filtered(id: str, title: str, tags: Mapping[str, str], chapters: list[Chapter]) -> Work:
    """Return the work, if it is in English, for a general audience and long enough."""
    language, rating = tags.get("language", ""), tags.get("rating", "")
    if not _ENGLISH.fullmatch(language.strip()):
        raise NotUsable("not English" if language else "no language stated")
    if not _GENERAL.fullmatch(rating.strip()):
        raise NotUsable("not General Audiences" if rating else "no rating stated")
    work = make_work(id, title, chapters)
    if len(work.chapters) <= MORE_CHAPTERS_THAN:
        raise NotUsable(f"{MORE_CHAPTERS_THAN} chapters or fewer")
    if sum(len(chapter.text.split()) for chapter in work.chapters) < FEWEST_WORDS:
        raise NotUsable(f"fewer than {FEWEST_WORDS:,} words")
    return work


def _json_chapters(columns: dict[str, Any], place: str) -> list[Chapter]:
    listed = columns.get("chapters")
    if isinstance(listed, list):
        chapters = []
        for number, each in enumerate(listed, 1):
            where = f"{place}, chapter {number}"
            named = each if isinstance(each, dict) else {"text": each}
            parts = {name.lower(): value for name, value in named.items()}
            heading = "\n".join(heading_lines(string(parts, ("head", "heading", "title"), where)))
            chapters.append(Chapter(heading, without_notes(_body(parts, where))))
        return chapters
    # Where "chapters" is a count ("12/12"), the story is one text.
    return cut(unix_lines(_body(columns, place)))


def _body(columns: dict[str, Any], place: str) -> str:
    """Return the text under one of the usual names; join a list of paragraphs."""
    paragraphs = columns.get("paragraphs")
    if isinstance(paragraphs, list) and all(isinstance(each, str) for each in paragraphs):
        return "\n\n".join(paragraphs)
    if all(columns.get(name) is None for name in _BODIES):
        raise EnsueError(f"{place} has no text: give 'chapters' as a list, or 'text'.")
    return string(columns, _BODIES, place)


def _first(value: Any, place: str) -> str:
    """Return a tag that may be a string or a list of one."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, str):
        return value or ""
    raise EnsueError(f"{place} has {in_words(value)} as its language or rating, where a string is expected.")


def _header(text: str) -> dict[str, str]:
    """Return the "Key: value" lines before the first chapter, the first of each key."""
    stated: dict[str, str] = {}
    for line in text.split("\n")[:200]:
        mark = parse_heading(line)
        if mark and mark.label == "chapter":
            break
        if found := _KEY.fullmatch(line):
            stated.setdefault(found["key"].strip().lower(), one_line(found["value"]))
    return stated


class _Open(NamedTuple):
    """An element that is open, and whether its text is a note."""

    tag: str
    classes: frozenset[str]
    id: str
    note: bool


class _StoryParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.tags: dict[str, str] = {}
        self.chapters: list[tuple[str, list[str]]] = []
        self._open: list[_Open] = []
        self._pieces: list[str] = []
        self._key = ""
        self._after_notes_label = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self.end_block()
            if tag == "p":
                self._close("p")  # a paragraph ends where the next begins
        if tag == "br":
            self._pieces.append("\n")
        if tag in _VOID:
            return
        named = dict(attrs)
        note = tag == "blockquote" and self._after_notes_label
        if note:
            self._after_notes_label = False
        classes = frozenset((named.get("class") or "").split())
        self._open.append(_Open(tag, classes, named.get("id") or "", note))

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.end_block()
        self._close(tag)

    def handle_data(self, data: str) -> None:
        if not any(each.tag in _UNSEEN for each in self._open):
            self._pieces.append(data.replace("\n", " "))

    def end_block(self) -> None:
        """Put what was read since the last block began where it belongs."""
        raw = "".join(self._pieces)
        self._pieces = []
        text = one_line(raw)
        if not text:
            return
        if not any(each.id == "chapters" for each in self._open):
            self._add_to_preface({each.tag for each in self._open}, text)
        elif any(each.tag == "h2" and "heading" in each.classes for each in self._open):
            self.chapters.append((text, []))
        else:
            self._add_to_chapter(raw, text)

    def _add_to_preface(self, tags: set[str], text: str) -> None:
        if "h1" in tags and not self.title:
            self.title = text
        elif "dt" in tags:
            self._key = text.rstrip(": ").lower()
        elif "dd" in tags and self._key:
            self.tags.setdefault(self._key, text)

    def _add_to_chapter(self, raw: str, text: str) -> None:
        self._after_notes_label = text.lower().rstrip(":") in _NOTES
        if self._after_notes_label or any("meta" in each.classes or each.note for each in self._open):
            return
        if not self.chapters:
            self.chapters.append(("", []))
        # Two line breaks in a row divide paragraphs in many stories.
        self.chapters[-1][1].extend(filter(None, map(one_line, raw.split("\n\n"))))

    def _close(self, tag: str) -> None:
        """Close the innermost element of a tag, and what was left open in it; skip strays."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                return
            if tag == "p" and self._open[place].tag in ("div", "blockquote"):
                return
