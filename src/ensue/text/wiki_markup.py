"""The markup of MediaWiki pages reduced to headings and paragraphs of running text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from ensue.text.sections import Event, Heading

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


def read_markup(text: str) -> list[Event]:
    """Headings and paragraphs of a page; templates, tables, references, files and lists are left out."""
    return list(_events(_reduced(text)))


def _reduced(text: str) -> str:
    text = _EMPTY.sub("", _COMMENT.sub("", text))
    text = _WITH_CONTENT.sub("", text)
    text = _without_links(_without_braces(text))
    text = _BARE_ADDRESS.sub("", _OUTER_LINK.sub(r"\1", text))
    text = _TAG.sub("", _BREAK.sub(" ", text))
    return html.unescape(_MAGIC.sub("", _EMPHASIS.sub("", text)))


def _without_braces(text: str) -> str:
    """The text outside all templates and tables; what is never closed is left in, but for its braces."""
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
    """Inner links as the words they show; files, categories and other languages' pages left out."""
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
    """The words a link shows.

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
