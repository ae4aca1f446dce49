"""Markdown files and HTML pages as headings and paragraphs, without code, tables, images, menus and markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.parser import HTMLParser

from ensue.text.sentences import one_line
from ensue.text.structure.sections import Event, Heading

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_TABLE = re.compile(r"\s*\|.*|\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)+")
_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:[ \t]*\S+.*")
_IMAGE = re.compile(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])")
_LINK = re.compile(r"\[([^\[\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_AUTOLINK = re.compile(r"<(?:https?|mailto|ftp):[^>\s]*>")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_CODE = re.compile(r"(`+)(.+?)\1")
_EMPHASIS = re.compile(r"(\*{1,3}|~~)(?=\S)(.+?)(?<=\S)\1|(?<!\w)(_{1,3})(?=\S)(.+?)(?<=\S)\3(?!\w)")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")
_HEADINGS = {f"h{rank}": rank for rank in range(1, 7)}
_PARAGRAPHS = frozenset({"p", "li", "dd", "blockquote"})
_UNSEEN = frozenset(
    {"script", "style", "nav", "footer", "aside", "table", "pre", "noscript", "template", "form", "svg"}
    | {"figure", "head", "button", "select", "iframe", "math"}
)
# Elements that end a paragraph left open, as HTML lets authors do.
_CONTAINERS = frozenset({"div", "section", "article", "ul", "ol", "dl", "dt", "hr", "main"})
_BLOCKS = _PARAGRAPHS | _CONTAINERS | _HEADINGS.keys()


def read_markdown(text: str) -> tuple[str, list[Event]]:
    """Read the title (of the front matter, or a first heading that is the only one of its rank) and the events."""
    title = ""
    if front := _FRONT_MATTER.match(text):
        text = text[front.end() :]
        if stated := _TITLE.search(front[1]):
            title = stated[1].strip("\"'")
    events = list(_events(_COMMENT.sub("", text).split("\n")))
    return titled(title, events)


def titled(title: str, events: list[Event]) -> tuple[str, list[Event]]:
    """Take the title off the events: a first event that is a heading of a rank no other heading has."""
    first = events[0] if events else ""
    if not isinstance(first, Heading):
        return title, events
    others = [event.rank for event in events[1:] if isinstance(event, Heading)]
    if all(rank > first.rank for rank in others):
        return title or first.title, events[1:]
    return title, events


def _events(lines: list[str]) -> Iterator[Event]:
    paragraph: list[str] = []
    fence = ""
    for line in lines:
        if fence:
            closing = _FENCE.match(line)
            if closing and closing[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        line = _QUOTE.sub("", line, count=1)
        if opening := _FENCE.match(line):
            fence = opening[1]
        elif found := _ATX.fullmatch(line):
            yield from _joined(paragraph)
            yield Heading(len(found[1]), plain(found[2] or ""))
            paragraph = []
            continue
        elif paragraph and (found := _UNDERLINE.fullmatch(line)):
            yield Heading(1 if found[1][0] == "=" else 2, plain(" ".join(paragraph)))
            paragraph = []
            continue
        elif line.strip() and not _left_out(line, bool(paragraph)):
            if item := _ITEM.match(line):
                yield from _joined(paragraph)
                paragraph = []
                line = line[item.end() :]
            paragraph.append(line.strip())
            continue
        yield from _joined(paragraph)
        paragraph = []
    yield from _joined(paragraph)


def _left_out(line: str, in_paragraph: bool) -> bool:
    code = line.startswith(("    ", "\t")) and not in_paragraph and not _ITEM.match(line)
    return bool(code or _RULE.fullmatch(line) or _TABLE.fullmatch(line) or _DEFINITION.fullmatch(line))


def _joined(paragraph: list[str]) -> Iterator[str]:
    text = plain(" ".join(paragraph))
    if any(character.isalnum() for character in text):
        yield text


def plain(text: str) -> str:
    """Remove the inline markup from a line.

    >>> plain("A [link](http://x) and **bold** `code`.")
    'A link and bold code.'
    """
    text = _AUTOLINK.sub("", _IMAGE.sub("", text))
    text = _TAG.sub("", _LINK.sub(r"\1", text))
    text = _CODE.sub(r"\2", text)
    for _ in range(2):
        text = _EMPHASIS.sub(lambda found: found[2] or found[4] or "", text)
    return " ".join(html.unescape(_ESCAPE.sub(r"\1", text)).split())


def read_html(text: str) -> tuple[str, list[Event]]:
    """Read the title (a first heading that stands above all others, or else the page's own) and the events."""
    parser = _Page()
    parser.feed(text)
    parser.close()
    parser.flush()
    title, events = titled("", parser.events)
    return title or one_line(parser.title), events


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.events: list[Event] = []
        self._pieces: list[str] = []
        self._kind = ""
        self._hidden: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title":
            self._in_title = not self.title
        elif tag == "body":
            # A head that nobody closed hides nothing below it.
            self._hidden.clear()
        elif tag in _UNSEEN:
            if not self._hidden or tag in self._hidden:
                self._hidden.append(tag)
        elif self._hidden:
            return
        elif tag in _BLOCKS:
            self.flush()
            self._kind = tag if tag in _HEADINGS or tag in _PARAGRAPHS else ""
        elif tag == "br":
            self._pieces.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        elif self._hidden:
            if tag == self._hidden[-1]:
                self._hidden.pop()
        elif tag in _BLOCKS:
            self.flush()

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif self._kind and not self._hidden:
            self._pieces.append(data)

    def flush(self) -> None:
        """End the heading or paragraph that is open."""
        text = one_line("".join(self._pieces))
        if text and self._kind:
            self.events.append(Heading(_HEADINGS[self._kind], text) if self._kind in _HEADINGS else text)
        self._pieces, self._kind = [], ""
