"""A document as a tree of titled sections with paragraphs, and every sentence with its place in that tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ensue.text.sentences import one_line, split_sentences
from ensue.text.works.chapters import NotUsable


@dataclass(frozen=True, slots=True)
class Section:
    """A section: its title, the paragraphs right below it, and the sections within it."""

    title: str
    paragraphs: tuple[str, ...]
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class StructuredDocument:
    """A document: its title, the paragraphs before the first heading, and its sections.

    `id` names the source's own file and a place in it, never a folder of this machine.
    """

    id: str
    title: str
    paragraphs: tuple[str, ...]
    sections: tuple[Section, ...] = ()


class Heading(NamedTuple):
    """A heading met on the way; the smaller the rank, the higher it stands."""

    rank: int
    title: str


Event = Heading | str


class SplitParagraph(NamedTuple):
    """A paragraph as its sentences, with the path of its section and its place among that section's paragraphs."""

    path: tuple[str, ...]
    place: int
    total: int
    sentences: list[str]


def build_document(id: str, title: str, events: Iterable[Event]) -> StructuredDocument:
    """Build the tree of headings and paragraphs in reading order; raise `NotUsable` where there is no paragraph.

    A heading goes below the nearest earlier one of higher rank, so a rank left out makes no empty level. Sections
    without any text are left out.

    >>> build_document("d", "Tea", ["Hot.", Heading(2, "Leaves"), "Green."]).sections
    (Section(title='Leaves', paragraphs=('Green.',), sections=()),)
    """
    root = _Open(0, "", [], [])
    stack = [root]
    for event in events:
        if isinstance(event, Heading):
            while len(stack) > 1 and stack[-1].rank >= event.rank:
                stack.pop()
            opened = _Open(event.rank, one_line(event.title), [], [])
            stack[-1].inner.append(opened)
            stack.append(opened)
        elif paragraph := one_line(event):
            stack[-1].paragraphs.append(paragraph)
    sections = _closed(root.inner)
    if not root.paragraphs and not sections:
        raise NotUsable("no text")
    return StructuredDocument(id, one_line(title), tuple(root.paragraphs), sections)


class _Open(NamedTuple):
    rank: int
    title: str
    paragraphs: list[str]
    inner: list[_Open]


def _closed(opened: list[_Open]) -> tuple[Section, ...]:
    closed = (Section(each.title, tuple(each.paragraphs), _closed(each.inner)) for each in opened)
    return tuple(section for section in closed if section.paragraphs or section.sections)


def walk(
    part: StructuredDocument | Section, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the path and the paragraphs of the lead and of every section, in reading order."""
    yield path, part.paragraphs
    for section in part.sections:
        yield from walk(section, (*path, section.title))


def split_paragraphs(document: StructuredDocument) -> list[SplitParagraph]:
    """Split the paragraphs of a document into sentences; leave out those without any."""
    found = []
    for path, paragraphs in walk(document):
        split = [sentences for text in paragraphs if (sentences := split_sentences(text))]
        found += [SplitParagraph(path, place, len(split), each) for place, each in enumerate(split)]
    return found
