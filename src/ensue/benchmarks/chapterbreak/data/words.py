"""Cut contexts and suffixes to size by words or by a tokenizer's tokens, white space kept as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

# Whether each character is white space; there is none beyond the ideographic space.
_SPACE = np.array([chr(code).isspace() for code in range(0x3001)] + [False])
# Words read beyond a suffix's own, so that one whose heading is rewritten can still be cut to full length.
_SLACK = 40


class Words:
    """A text and where its words begin, found once for many cuts; white space divides words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = _word_starts(text)

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        """Count how many words begin before an offset, which is the number of a word that begins there."""
        return int(np.searchsorted(self.starts, offset))

    def before(self, offset: int, count: int) -> str:
        """Return the last `count` words before an offset.

        >>> Words("one two\\n\\nthree four").before(15, 2)
        'two\\n\\nthree'
        """
        if not len(self):
            return ""
        first = max(0, self.number(offset) - count)
        return self.text[int(self.starts[first]) : offset].strip()

    def after(self, offset: int, count: int) -> str:
        """Return the first `count` words from an offset on.

        >>> Words("one two\\n\\nthree four").after(4, 2)
        'two\\n\\nthree'
        """
        end = self.number(offset) + count
        return self.text[offset : int(self.starts[end]) if end < len(self) else len(self.text)].strip()


def _word_starts(text: str) -> npt.NDArray[np.int64]:
    """Find where a character that is no white space follows one that is, or nothing."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    space = _SPACE[np.minimum(codes, len(_SPACE) - 1)]
    follows_space = np.concatenate(([True], space[:-1])) if len(space) else space
    return np.flatnonzero(~space & follows_space)


class Tokens(Protocol):
    """What a tokenizer must do: count, and cut the last or first so many tokens, or all there are."""

    @property
    def name(self) -> str: ...

    def count(self, text: str) -> int: ...

    def last(self, text: str, count: int) -> str: ...

    def first(self, text: str, count: int) -> str: ...


@dataclass(frozen=True)
class Sizes:
    """How long contexts and suffixes are: in words or, where there is a tokenizer, in its tokens.

    No token is longer than a word, so that 8,192 words hold at least 8,192 tokens of any tokenizer: what is cut
    by words is long enough for every model, and what is cut by tokens is found within as many words.
    """

    prefix: int
    suffix: int
    tokens: Tokens | None = None

    @property
    def unit(self) -> str:
        return "tokens" if self.tokens else "words"

    def length(self, text: str) -> int:
        """Count the words or tokens of a text."""
        return self.tokens.count(text) if self.tokens else len(text.split())

    def context(self, words: Words, offset: int) -> str:
        """Return the text that ends at an offset."""
        text = words.before(offset, self.prefix)
        return self.tokens.last(text, self.prefix) if self.tokens else text

    def start(self, words: Words, begin: int, end: int) -> str:
        """Return the start of the text between two offsets: some words more than a suffix has."""
        return words.after(begin, self.suffix + _SLACK)[: end - begin].rstrip()

    def cut(self, start: str) -> str:
        """Cut a suffix from the text that begins with it."""
        text = Words(start).after(0, self.suffix)
        return self.tokens.first(text, self.suffix) if self.tokens else text
