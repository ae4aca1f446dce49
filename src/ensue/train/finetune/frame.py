"""The special tokens and token types a tokenizer puts around one text and around two, and how texts are cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ensue.errors import EnsueError


class Part(NamedTuple):
    """Special tokens at one place, with their types."""

    ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()


class Frame(NamedTuple):
    """What stands before, between and after the texts, and the type of each text's tokens."""

    specials: tuple[Part, ...]
    types: tuple[int, ...]

    @property
    def extra(self) -> int:
        """How many tokens are not of the texts."""
        return sum(len(part.ids) for part in self.specials)


class Frames(NamedTuple):
    """The frame of one text and that of two."""

    one: Frame
    two: Frame

    def of(self, texts: int) -> Frame:
        return self.one if texts == 1 else self.two


def find_frames(tokenizer: Any) -> Frames:
    """The tokenizer's own forms, found out by having it encode a word, then two.

    One that puts nothing between two texts (of most left-to-right models) gets a line break there.
    """
    if not tokenizer.is_fast:
        raise EnsueError(
            "Fine-tuning needs a tokenizer that tells where its tokens lie (tokenizer.json); this one is slow."
        )
    one = _frame(tokenizer("one", return_token_type_ids=True), 1)
    two = _frame(tokenizer("one", "two", return_token_type_ids=True), 2)
    before, between, after = two.specials
    if not between.ids:
        ids = tuple(tokenizer("\n", add_special_tokens=False)["input_ids"])
        between = Part(ids, (0,) * len(ids))
    return Frames(one, Frame((before, between, after), two.types))


def _frame(encoding: Any, texts: int) -> Frame:
    """The specials by how many of the texts have begun before them."""
    sequences = encoding.sequence_ids(0)
    ids = encoding["input_ids"]
    types = encoding.get("token_type_ids") or [0] * len(ids)
    places: list[list[int]] = [[] for _ in range(texts + 1)]
    begun = 0
    for position, sequence in enumerate(sequences):
        if sequence is None:
            places[begun].append(position)
        else:
            begun = sequence + 1
    parts = tuple(Part(tuple(ids[p] for p in place), tuple(types[p] for p in place)) for place in places)
    return Frame(parts, tuple(types[sequences.index(text)] for text in range(texts)))


def kept_lengths(lengths: Sequence[int], room: int, keep_second: bool) -> list[int]:
    """How many tokens of each text stay when `room` tokens of text may.

    The longer of two texts is cut first, down to the other; with `keep_second` only the first is cut, unless the
    second alone is too long.

    >>> kept_lengths([9, 3], 8, False), kept_lengths([9, 7], 8, False), kept_lengths([9, 7], 8, True)
    ([5, 3], [4, 4], [1, 7])
    """
    if sum(lengths) <= room:
        return list(lengths)
    if len(lengths) == 1:
        return [room]
    first, second = lengths
    if keep_second:
        return [max(room - second, 0), min(second, room)]
    half = room // 2
    if first >= second:
        second = min(second, half)
        return [room - second, second]
    first = min(first, room - half)
    return [first, room - first]
