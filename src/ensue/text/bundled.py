"""The bundled documents: twelve short texts written for ensue, three for each of four domains."""

from __future__ import annotations

from ensue.text.documents import BUNDLED, Documents, read_documents


def bundled_documents() -> Documents:
    """The twelve bundled documents (news, law, blog, story) of twenty sentences each.

    >>> sorted({document.domain for document in bundled_documents()})
    ['blog', 'law', 'news', 'story']
    """
    return read_documents(BUNDLED)
