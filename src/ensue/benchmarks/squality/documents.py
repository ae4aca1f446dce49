"""The text of a published document, whatever it came in: a page, a page whose tags were taken off, or plain text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

# Version 1 has no tags any more, but left the declaration of what the page was.
_DECLARATION = re.compile(r"\A\s*(?:<\?xml[^>]*>\s*)?<!DOCTYPE[^>]*>", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:html|p|h[1-6]|div)\b[^>]*>", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
# What version 1.3's plain text has in place of a line break within a paragraph.
_LINE_BREAK = re.compile(r"\n {3}\n {2}(?=\S)")
_INDENT = re.compile(r"^[ \t]+|[ \t]+$", re.MULTILINE)
_BLOCKS = frozenset(
    {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "ul", "ol", "blockquote", "hr", "pre", "center"}
    | {"table", "tr", "section", "html", "body", "head", "title", "dl", "dt", "dd"}
)
_UNSEEN = frozenset({"script", "style", "title"})


def plain_text(document: str) -> str:
    """The words of a document; a page's paragraphs are parted by blank lines, lines within them are joined.

    >>> plain_text("<html><h1>The Mill</h1><p>It stood\\n still.</p></html>")
    'The Mill\\n\\nIt stood still.'
    """
    bare = _DECLARATION.sub("", document, count=1)
    if _TAGS.search(bare):
        return _page_text(bare)
    lines = _INDENT.sub("", _LINE_BREAK.sub("\n", bare))
    return _BLANK_LINES.sub("\n\n", lines).strip()


def _page_text(page: str) -> str:
    parser = _Page()
    parser.feed(page)
    parser.close()
    parser.end_paragraph()
    return "\n\n".join(parser.paragraphs)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[str] = []
        self._pieces: list[str] = []
        self._hidden = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._hidden = tag
        elif tag in _BLOCKS:
            self.end_paragraph()
        elif tag == "br":
            self._pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""
        elif tag in _BLOCKS:
            self.end_paragraph()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._pieces.append(data)

    def end_paragraph(self) -> None:
        text = " ".join("".join(self._pieces).split())
        if text:
            self.paragraphs.append(text)
        self._pieces = []
