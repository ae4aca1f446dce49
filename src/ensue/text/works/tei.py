"""TEI documents with chapters as `<div type="chapter">`, as the ELTeC collections have them."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ensue.errors import EnsueError
from ensue.text.sentences import one_line
from ensue.text.works.chapters import Chapter, Work, make_work

# No part of the text: notes, page breaks and headers, figures, and what stands before or after the work.
_DROPPED = frozenset({"note", "pb", "fw", "figure", "front", "back", "teiheader", "cb", "milestone", "gb"})
_PARAGRAPHS = frozenset(
    {"p", "ab", "l", "lg", "head", "opener", "closer", "signed", "salute", "dateline", "trailer", "byline"}
    | {"speaker", "stage", "item", "label", "row", "postscript", "argument"}
)
_SPACED = frozenset({"l", "lb", "p", "item", "cell", "lg", "head", "ab"})
_CORRECTED = frozenset({"reg", "corr", "expan"})


def read_tei(data: bytes, place: str, id: str) -> Work:
    """Read a work from the bytes of a TEI document, each chapter headed by its parts' headings too.

    Where no division has the type "chapter", the innermost divisions are the chapters.
    """
    root = _parsed(data, place)
    body = next((each for each in root.iter() if _name(each) == "body"), root)
    typed = [each for each in body.iter() if _is_division(each) and each.get("type", "").lower() == "chapter"]
    chosen = set(typed or (each for each in body.iter() if _is_innermost(each)))
    chapters = list(_chapters(body, chosen, []))
    return make_work(id, _title(root), chapters)


def _parsed(data: bytes, place: str) -> Element:
    if b"\0" in data:
        raise EnsueError(f"{place} holds a NUL byte, so it is UTF-16 or no XML: convert it to UTF-8.")
    if b"<!ENTITY" in data:
        raise EnsueError(
            f"{place} declares entities in its DOCTYPE, which are not read: take the DOCTYPE out."
        )
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise EnsueError(f"{place} is not well-formed XML ({error}): repair it or leave it out.") from error


def _chapters(element: Element, chosen: set[Element], above: list[str]) -> Iterator[Chapter]:
    """Yield the chosen divisions below an element; `above` holds headings of parts that no chapter has taken yet."""
    for child in element:
        if _name(child) in _DROPPED:
            continue
        if child in chosen:
            heads, text = _heads_and_text(child)
            if text:
                yield Chapter("\n".join([*above, *heads]), text)
                above.clear()
        elif _is_division(child):
            above += [line for each in child if _name(each) == "head" for line in _head_lines(each)]
            yield from _chapters(child, chosen, above)
        else:
            yield from _chapters(child, chosen, above)


def _heads_and_text(division: Element) -> tuple[list[str], str]:
    """Return the lines of a chapter's own headings, and its paragraphs."""
    heads: list[str] = []
    paragraphs: list[str] = []
    for child in division:
        if _name(child) == "head" and not paragraphs:
            heads += _head_lines(child)
        else:
            paragraphs += _paragraphs(child)
    return heads, "\n\n".join(paragraphs)


def _head_lines(head: Element) -> list[str]:
    """Split a heading at its line breaks."""
    return [line for line in map(one_line, _inline(head, line_break="\n").split("\n")) if line]


def _paragraphs(element: Element) -> Iterator[str]:
    """Yield the paragraphs of an element, a stanza as one."""
    name = _name(element)
    if name in _DROPPED:
        return
    if name in _PARAGRAPHS:
        if text := one_line(_inline(element)):
            yield text
        return
    if text := one_line(element.text or ""):
        yield text
    for child in element:
        yield from _paragraphs(child)
        if text := one_line(child.tail or ""):
            yield text


def _inline(element: Element, line_break: str = " ") -> str:
    """Return the text of an element and all within, less what is dropped; white space in the source is a space."""
    pieces = [one_space(element.text)]
    corrected = _name(element) == "choice" and any(_name(child) in _CORRECTED for child in element)
    for child in element:
        name = _name(child)
        if name == "lb":
            pieces.append("" if child.get("break") == "no" else line_break)
        elif name not in _DROPPED and (not corrected or name in _CORRECTED):
            spaced = " " if name in _SPACED else ""
            pieces += [spaced, _inline(child, line_break), spaced]
        pieces.append("" if corrected else one_space(child.tail))
    return "".join(pieces)


def one_space(text: str | None) -> str:
    """Replace line breaks by spaces, so that only `<lb/>` divides lines."""
    return (text or "").replace("\n", " ").replace("\r", " ")


def _title(root: Element) -> str:
    statement = next((each for each in root.iter() if _name(each) == "titlestmt"), None)
    if statement is None:
        return ""
    return next((one_line("".join(each.itertext())) for each in statement if _name(each) == "title"), "")


def _is_division(element: Element) -> bool:
    name = _name(element)
    return name.startswith("div") and name[3:] in ("", *"1234567")


def _is_innermost(element: Element) -> bool:
    return _is_division(element) and not any(
        _is_division(each) for each in element.iter() if each is not element
    )


def _name(element: Element) -> str:
    """Return the tag without its namespace, in lower case; "note" for comments and the like, which are dropped."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else "note"
