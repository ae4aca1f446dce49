"""The text of a document is the same in every form it is published in."""

from __future__ import annotations

import pytest

from ensue.benchmarks.squality.documents import plain_text

DECLARATION = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN"\n    "strict.dtd">\n'


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (
            DECLARATION + "The Ferry\nIt had not run.\n\n\n\nNot once.",
            "The Ferry\nIt had not run.\n\nNot once.",
        ),
        (
            "\n\n\nThe Ferry\n   \n  by nobody\n \n  It had not run.\n",
            "The Ferry\nby nobody\n\nIt had not run.",
        ),
        (
            DECLARATION
            + "<html>\n <h1>\n  The Ferry\n </h1>\n <p>\n  It had\n  <i>\n   not\n  </i>\n  run &amp; "
            "would\n  <br/>\n  not.\n </p>\n</html>\n",
            "The Ferry\n\nIt had not run & would not.",
        ),
        ("<html><head><title>T</title><style>p {}</style></head><p>a</p><div>b</div></html>", "a\n\nb"),
        ('<?xml version="1.0"?>\n' + DECLARATION + "The Ferry", "The Ferry"),
        ("Two is < three, and three > two.", "Two is < three, and three > two."),
    ],
)
def test_documents_lose_their_markup_and_nothing_else(document: str, text: str) -> None:
    assert plain_text(document) == text
    assert plain_text(text) == text
