"""Characters that steer a terminal, made visible: a text that is shown must not move the cursor or hide another."""

from __future__ import annotations

# Line ends and tabs stay; the other controls have pictures of their own, and those that turn the writing direction
# or belong to no alphabet are shown as one that is missing.
_PICTURES: dict[int, str | None] = {
    code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"
}
_PICTURES |= {0x7F: "\u2421", ord("\r"): None}
_PICTURES |= dict.fromkeys(
    [*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\N{REPLACEMENT CHARACTER}"
)


def visible(text: str) -> str:
    """Return a text without characters that steer a terminal.

    >>> visible("a\\x1b[31mb\\r\\n")
    'a␛[31mb\\n'
    """
    return text.translate(_PICTURES)
