"""Pages and tables as a reader sees them: tags and words of HTML, lines of a terminal."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from rich.console import Console

EVIL = "<script>alert('x')</script> & <img src=http://evil.example/x.png onerror=x> $5 \"quoted\""
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """Reads a page strictly: collects tags, attributes and words, and notices what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.open, self.faults = [], [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def printed(table):
    """The lines of a rich table at 80 columns."""
    console = Console(width=80)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()
