"""Text as segments of whole sentences, none longer than a limit of tokens, as a segment-level model reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ensue.scoring.tokens import specials_around, tokenise
from ensue.text.sentences import split_sentences

Tokens = list[int]


class Frame(NamedTuple):
    """A segment's size and the special tokens around its text."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    size: int

    @property
    def room(self) -> int:
        """How many tokens of text fit."""
        return self.size - len(self.before) - len(self.after)

    def around(self, tokens: Sequence[int]) -> Tokens:
        """Return a segment as the encoder takes it."""
        return [*self.before, *tokens, *self.after]


def frame_of(tokenizer: Any, size: int) -> Frame:
    """Return segments of `size` tokens under this tokenizer."""
    return Frame(*specials_around(tokenizer, tokenizer.name_or_path), size)


def sentence_tokens(tokenizer: Any, text: str) -> list[Tokens]:
    """Return the tokens of each sentence of a text, without special tokens; sentences that have none are left out."""
    return [ids.tolist() for ids in tokenise(tokenizer, split_sentences(text)) if len(ids)]


def pack(sentences: Iterable[Sequence[int]], size: int) -> list[Tokens]:
    """Return segments from the left: each starts with a new sentence and takes the sentences that fit whole.

    A sentence longer than a segment fills it and flows over into the next, which further sentences may fill.

    >>> pack([[1, 2], [3], [4, 5, 6, 7, 8], [9]], size=3)
    [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    """
    segments: list[Tokens] = []
    for piece in _pieces(sentences, size):
        if segments and len(segments[-1]) + len(piece) <= size:
            segments[-1].extend(piece)
        else:
            segments.append(list(piece))
    return segments


def first_segment(sentences: Iterable[Sequence[int]], size: int) -> Tokens:
    """Return the segment a text begins with when it is packed from the left; empty where the text is.

    >>> first_segment([[1, 2], [3], [4, 5]], size=4), first_segment([[1, 2, 3, 4, 5], [6]], size=4)
    ([1, 2, 3], [1, 2, 3, 4])
    """
    return next(iter(pack(sentences, size)), [])


def pack_to_end(sentences: Iterable[Sequence[int]], size: int, most: int) -> list[Tokens]:
    """Return at most `most` segments that end where the text ends, filled from the right.

    The last segment is as full as whole sentences make it, and a longer prefix only adds segments in front,
    so that prefixes of every length share their segments.

    >>> pack_to_end([[0], [1, 2], [3], [4, 5], [6]], size=3, most=2)
    [[1, 2, 3], [4, 5, 6]]
    """
    segments: list[list[Sequence[int]]] = []
    room = 0
    for piece in reversed(_pieces(sentences, size)):
        if segments and len(piece) <= room:
            segments[-1].append(piece)
            room -= len(piece)
        elif len(segments) == most:
            break
        else:
            segments.append([piece])
            room = size - len(piece)
    return [[token for piece in reversed(segment) for token in piece] for segment in reversed(segments)]


def _pieces(sentences: Iterable[Sequence[int]], size: int) -> list[Sequence[int]]:
    """Return the sentences, each longer one cut into pieces of at most `size` tokens."""
    return [s[begin : begin + size] for s in sentences for begin in range(0, len(s), size)]
