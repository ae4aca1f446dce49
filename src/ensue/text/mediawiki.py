"""MediaWiki XML dumps, plain or bz2: the articles one by one, redirects and other namespaces counted out."""

from __future__ import annotations

import bz2
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ensue.errors import EnsueError
from ensue.text.sections import Event
from ensue.text.wiki_markup import read_markup

REDIRECTS, OTHER_NAMESPACES = "redirects", "pages that are no articles"


def read_mediawiki(path: Path, skipped: Counter[str]) -> Iterator[tuple[str, str, list[Event]]]:
    """Number, title and events of every article, one page held at a time."""
    pages = 0
    try:
        with _opened(path) as file:
            parser = ElementTree.iterparse(file, events=("start", "end"))
            root: Element | None = None
            for event, element in parser:
                root = element if root is None else root
                if event == "start" or _name(element) != "page":
                    continue
                pages += 1
                if (article := _article(element, skipped)) is not None:
                    number, title, text = article
                    yield number or str(pages), title, read_markup(text)
                root.clear()
    except ElementTree.ParseError as error:
        line, column = error.position
        raise EnsueError(
            f"{path}, line {line}, column {column + 1} is no sound XML after {pages} pages: fetch the dump again."
        ) from error
    except EOFError as error:
        raise EnsueError(f"{path} is cut off after {pages} pages: fetch the dump again.") from error
    except OSError as error:
        reason = error.strerror or error
        raise EnsueError(f"{path} could not be read after {pages} pages: {reason}.") from error
    if not pages:
        raise EnsueError(f"{path} holds no page, so it is no MediaWiki dump.")


def is_dump(path: Path) -> bool:
    """Whether an XML file says at its head that it is a MediaWiki dump."""
    try:
        with _opened(path) as file:
            return b"<mediawiki" in file.read(4096)
    except (OSError, EOFError) as error:
        raise EnsueError(f"{path} could not be read: {error}.") from error


def _opened(path: Path) -> IO[bytes]:
    return bz2.open(path) if path.suffix.lower() == ".bz2" else path.open("rb")


def _article(page: Element, skipped: Counter[str]) -> tuple[str, str, str] | None:
    """Number, title and markup of a page that is an article."""
    found: dict[str, Element] = {}
    for child in page.iter():
        # The first id is the page's own; those of revisions and contributors come after it.
        found.setdefault(_name(child), child)
    if (found["ns"].text if "ns" in found else "0") != "0":
        skipped[OTHER_NAMESPACES] += 1
        return None
    text = (found["text"].text or "") if "text" in found else ""
    if "redirect" in found or text.lstrip()[:9].upper() == "#REDIRECT":
        skipped[REDIRECTS] += 1
        return None
    title = (found["title"].text or "") if "title" in found else ""
    return (found["id"].text or "") if "id" in found else "", title, text


def _name(element: Element) -> str:
    return element.tag.rpartition("}")[2]
