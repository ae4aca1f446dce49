"""Markdown that organisers write, as HTML that can do nothing: no tags of their own, no images, no scripts."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markupsafe import Markup

_READER = (
    MarkdownIt("commonmark", {"html": False}).enable("table").disable(["image", "html_inline", "html_block"])
)


def rendered(words: str) -> Markup:
    """Return a text in Markdown as HTML whose headings stand below that of the page.

    >>> rendered("# One\\n\\nSee <b>[this](javascript:x)</b>.")
    Markup('<h2>One</h2>\\n<p>See &lt;b&gt;[this](javascript:x)&lt;/b&gt;.</p>\\n')
    """
    tokens = _READER.parse(words)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"
        for child in token.children or ():
            if child.type == "link_open":
                # Who follows one keeps the page with the work on it.
                child.attrSet("target", "_blank")
                child.attrSet("rel", "noopener noreferrer")
    return Markup(_READER.renderer.render(tokens, _READER.options, {}))
