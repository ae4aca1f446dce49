"""HTML pages as headings (h1 to h6) and paragraphs, without scripts, menus, tables and code."""

from __future__ import annotations

from html.parser import HTMLParser

from ensue.text.chapters import one_line
from ensue.text.markdown import titled
from ensue.text.sections import Event, Heading

_HEADINGS = {f"h{rank}": rank for rank in range(1, 7)}
_PARAGRAPHS = frozenset({"p", "li", "dd", "blockquote"})
_UNSEEN = frozenset(
    {"script", "style", "nav", "footer", "aside", "table", "pre", "noscript", "template", "form", "svg"}
    | {"figure", "head", "button", "select", "iframe", "math"}
)
# Elements that end a paragraph left open, as HTML lets authors do.
_CONTAINERS = frozenset({"div", "section", "article", "ul", "ol", "dl", "dt", "hr", "main"})
_BLOCKS = _PARAGRAPHS | _CONTAINERS | _HEADINGS.keys()


def read_html(text: str) -> tuple[str, list[Event]]:
    """The title (a first heading that stands above all others, or else the page's own) and the events."""
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
