"""Every sentence of a structured document with its place, one record each: what tests compare packed forms with."""

from __future__ import annotations

from typing import NamedTuple

from ensue.text.structure.sections import StructuredDocument, split_paragraphs


class SentencePlace(NamedTuple):
    """A sentence and where it stands; all positions count from 0.

    `path` holds the titles of the sections around it, outermost first; `level` is how many there are, so the
    lead of a document has level 0. `paragraph` counts within the section, `document_paragraph` within the document.
    `before` and `after` are its neighbours in the document, None at its edges.
    """

    text: str
    document_title: str
    path: tuple[str, ...]
    level: int
    paragraph: int
    paragraphs: int
    document_paragraph: int
    document_paragraphs: int
    sentence: int
    sentences: int
    before: str | None
    after: str | None


def sentence_places(document: StructuredDocument) -> list[SentencePlace]:
    """Return every sentence of a document with its place and its neighbours."""
    paragraphs = split_paragraphs(document)
    texts = [sentence for paragraph in paragraphs for sentence in paragraph.sentences]
    found: list[SentencePlace] = []
    for number, paragraph in enumerate(paragraphs):
        for place, text in enumerate(paragraph.sentences):
            here = len(found)
            found.append(
                SentencePlace(
                    text=text,
                    document_title=document.title,
                    path=paragraph.path,
                    level=len(paragraph.path),
                    paragraph=paragraph.place,
                    paragraphs=paragraph.total,
                    document_paragraph=number,
                    document_paragraphs=len(paragraphs),
                    sentence=place,
                    sentences=len(paragraph.sentences),
                    before=texts[here - 1] if here else None,
                    after=texts[here + 1] if here + 1 < len(texts) else None,
                )
            )
    return found
