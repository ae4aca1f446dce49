"""Wiki articles as headings and paragraphs: MediaWiki dumps (XML, plain or bz2) and WikiText files.

The markup of MediaWiki is reduced to running text. WikiText-2 and WikiText-103 divide articles by ` = Heading = `
lines, with one paragraph a line.
"""

from __future__ import annotations

import bz2
import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ensue.errors import EnsueError
from ensue.jsonl import text_lines
from ensue.text.structure.sections import Event, Heading

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_EMPTY = re.compile(r"<(?:ref|references)\b[^<>]*/>", re.IGNORECASE)
_WITH_CONTENT = re.compile(
    r"<(ref|math|chem|gallery|timeline|syntaxhighlight|source|code|pre|score|imagemap|table|poem|hiero|graph"
    r"|mapframe|references|noinclude|includeonly)\b[^<>]*>.*?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
# A table begins and ends a line; `|}` before a third brace ends a template's last, empty argument.
_BRACES = re.compile(r"\{\{|\}\}|^[ \t:]*\{\||^[ \t]*\|\}(?!\})", re.MULTILINE)
_BRACKETS = re.compile(r"\[\[|\]\]")
_OUTER_LINK = re.compile(r"\[(?:https?:|ftp:|mailto:)?//[^\s\]]*[ \t]*([^\]\n]*)\]")
_BARE_ADDRESS = re.compile(r"(?<!\w)https?://[^\s\]]+")
_PREFIXED = re.compile(r":?\s*([^\[\]|:]{2,20}):[^|]*", re.DOTALL)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]+)*")
_FILES = frozenset(
    {"file", "image", "media", "category", "datei", "bild", "kategorie", "fichier", "catégorie"}
)
_HEADING = re.compile(r"(={2,6})[ \t]*(.+?)[ \t]*\1[ \t]*")
_EMPHASIS = re.compile(r"'{2,5}")
_MAGIC = re.compile(r"__[A-Z]+__")
_EMPTY_BRACKETS = re.compile(r"\s*\(\s*[,;:\s]*\)")
_LISTS = ("*", "#", ";", ":", "|", "!", "{|")
REDIRECTS, OTHER_NAMESPACES = "redirects", "pages that are no articles"
_WIKITEXT_HEADING = re.compile(r"((?:= )+)(\S.*?)((?: =)+)")
_JOINED = re.compile(r" @([-.,])@ ")
_CLOSING = re.compile(r" ([.,;:!?%)\]}]|'(?:s|re|ve|ll|d|m)\b|n't\b)")
_OPENING = re.compile(r"([(\[{$£€]) ")
_QUOTED = re.compile(r'" ([^"]*?) "')


def read_markup(text: str) -> list[Event]:
    """Read headings and paragraphs of a page; leave out templates, tables, references, files and lists."""
    return list(_events(_reduced(text)))


def _reduced(text: str) -> str:
    text = _EMPTY.sub("", _COMMENT.sub("", text))
    text = _WITH_CONTENT.sub("", text)
    text = _without_links(_without_braces(text))
    text = _BARE_ADDRESS.sub("", _OUTER_LINK.sub(r"\1", text))
    text = _TAG.sub("", _BREAK.sub(" ", text))
    return html.unescape(_MAGIC.sub("", _EMPHASIS.sub("", text)))


def _without_braces(text: str) -> str:
    """Remove all templates and tables; of what is never closed, remove only the braces."""
    stack: list[tuple[str, list[str]]] = [("", [])]
    end = 0
    for found in _BRACES.finditer(text):
        stack[-1][1].append(text[end : found.start()])
        end = found.end()
        mark = found[0].strip(" \t:")
        if mark in ("{{", "{|"):
            stack.append((mark, []))
            continue
        opening = "{{" if mark == "}}" else "{|"
        opened = [place for place, (each, _) in enumerate(stack) if each == opening]
        if opened:
            # What was opened within and never closed goes with it.
            del stack[opened[-1] :]
    stack[-1][1].append(text[end:])
    return "".join(piece for _, pieces in stack for piece in pieces)


def _without_links(text: str) -> str:
    """Replace inner links by the words they show; remove files, categories and other languages' pages."""
    stack: list[list[str]] = [[]]
    end = 0
    for found in _BRACKETS.finditer(text):
        stack[-1].append(text[end : found.start()])
        end = found.end()
        if found[0] == "[[":
            stack.append([])
        elif len(stack) > 1:
            inner = "".join(stack.pop())
            stack[-1].append(_shown(inner))
    stack[-1].append(text[end:])
    return "".join(piece for pieces in stack for piece in pieces)


def _shown(link: str) -> str:
    """Return the words a link shows.

    >>> _shown("Tea (drink)|tea"), _shown("File:Tea.jpg|thumb|A cup"), _shown("de:Tee")
    ('tea', '', '')
    """
    if found := _PREFIXED.match(link):
        name = found[1].strip()
        if name.lower() in _FILES and not link.lstrip().startswith(":"):
            return ""
        if _LANGUAGE.fullmatch(name) and "|" not in link and not link.startswith(":"):
            return ""
    return link.rpartition("|")[2].lstrip(":")


def _events(text: str) -> Iterator[Event]:
    paragraph: list[str] = []
    for line in [*text.split("\n"), ""]:
        line = line.strip()
        heading = _HEADING.fullmatch(line)
        if line and heading is None and not line.startswith(_LISTS):
            paragraph.append(line)
            continue
        joined = _EMPTY_BRACKETS.sub("", " ".join(paragraph))
        paragraph = []
        if any(character.isalnum() for character in joined):
            yield joined
        if heading is not None:
            yield Heading(len(heading[1]), heading[2])


def read_mediawiki(path: Path, skipped: Counter[str]) -> Iterator[tuple[str, str, list[Event]]]:
    """Read number, title and events of every article, one page held at a time."""
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
            f"{path}, line {line}, column {column + 1} is not sound XML after {pages} pages: fetch the dump again."
        ) from error
    except EOFError as error:
        raise EnsueError(f"{path} is cut off after {pages} pages: fetch the dump again.") from error
    except OSError as error:
        reason = error.strerror or error
        raise EnsueError(f"{path} cannot be read after {pages} pages: {reason}.") from error
    if not pages:
        raise EnsueError(f"{path} holds no page, so it is not a MediaWiki dump.")


def is_dump(path: Path) -> bool:
    """Return whether an XML file says at its head that it is a MediaWiki dump."""
    try:
        with _opened(path) as file:
            return b"<mediawiki" in file.read(4096)
    except (OSError, EOFError) as error:
        raise EnsueError(f"{path} cannot be read: {error}.") from error


def _opened(path: Path) -> IO[bytes]:
    return bz2.open(path) if path.suffix.lower() == ".bz2" else path.open("rb")


def _article(page: Element, skipped: Counter[str]) -> tuple[str, str, str] | None:
    """Return number, title and markup of a page that is an article; None where it is none."""
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


def read_wikitext(path: Path) -> Iterator[tuple[str, list[Event]]]:
    """Read title and events of every article, one article held at a time."""
    title, events = "", list[Event]()
    empty = True
    for line, lone in _lines(path):
        heading = wikitext_heading(line) if lone else None
        if heading is not None and heading.rank == 1:
            if title or events:
                yield title, events
            title, events = heading.title, []
            empty = False
        elif heading is not None:
            events.append(heading)
        elif line:
            events.append(detokenised(line))
            empty = False
    if empty:
        raise EnsueError(f"{path} is empty: leave it out, or fetch it again.")
    if title or events:
        yield title, events


def wikitext_heading(line: str) -> Heading | None:
    """Parse a stripped line as a heading, which has as many marks before its title as after it.

    >>> wikitext_heading("= = Early life = =")
    Heading(rank=2, title='Early life')
    """
    found = _WIKITEXT_HEADING.fullmatch(line)
    if found is None or found[1].count("=") != found[3].count("="):
        return None
    return Heading(found[1].count("="), detokenised(found[2]))


def detokenised(text: str) -> str:
    """Join the tokens of a text as print has them, as far as that is certain.

    >>> detokenised('It was " two @-@ part " ( 1 @.@ 5 m ) , the town \\'s first .')
    'It was "two-part" (1.5 m), the town\\'s first.'
    """
    text = _QUOTED.sub(r'"\1"', _JOINED.sub(r"\1", text))
    return _OPENING.sub(r"\1", _CLOSING.sub(r"\1", text))


def _lines(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield stripped lines, each with whether it stands between blank ones, as every heading does."""
    before, waiting = "", None
    for _, line in text_lines(path, newline="\n"):
        line = line.strip()
        if waiting is not None:
            yield waiting, not before and not line
            before = waiting
        waiting = line
    if waiting is not None:
        yield waiting, not before
