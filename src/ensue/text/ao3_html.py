"""A story's page as the Archive of Our Own lets one download it: its tags, and its chapters without notes."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple

from ensue.text.chapters import one_line

_BLOCKS = frozenset(
    {"p", "div", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "li", "hr", "tr", "dd", "dt", "pre"}
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
)
_UNSEEN = frozenset({"script", "style", "head"})
_NOTES = frozenset({"chapter notes", "chapter summary", "chapter end notes", "notes", "summary", "end notes"})


class StoryPage(NamedTuple):
    """The title, the tags by name in lower case, and the chapters as heading and text."""

    title: str
    tags: dict[str, str]
    chapters: list[tuple[str, str]]


def read_story_page(html: str) -> StoryPage:
    """The story of a page.

    Within the element with the id "chapters", an `<h2 class="heading">` begins a chapter; blocks of the class "meta"
    hold headings, notes and summaries, and so does a quotation below a line such as "Chapter Notes".
    """
    parser = _StoryParser()
    parser.feed(html)
    parser.close()
    parser.end_block()
    chapters = [(heading, "\n\n".join(paragraphs)) for heading, paragraphs in parser.chapters]
    return StoryPage(parser.title, parser.tags, [each for each in chapters if each[1]])


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
        """What was read since the last block began, put where it belongs."""
        raw = "".join(self._pieces)
        self._pieces = []
        text = one_line(raw)
        if not text:
            return
        tags = {each.tag for each in self._open}
        if not any(each.id == "chapters" for each in self._open):
            self._add_to_preface(tags, text)
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
        is_label = text.lower().rstrip(":") in _NOTES
        in_meta = any("meta" in each.classes or each.note for each in self._open)
        if in_meta or is_label:
            self._after_notes_label = is_label
            return
        self._after_notes_label = False
        if not self.chapters:
            self.chapters.append(("", []))
        # Two line breaks in a row divide paragraphs in many stories.
        self.chapters[-1][1].extend(filter(None, map(one_line, raw.split("\n\n"))))

    def _close(self, tag: str) -> None:
        """Closes the innermost element of a tag, and what was left open in it; strays are passed over."""
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                return
            if tag == "p" and self._open[place].tag in ("div", "blockquote"):
                return
