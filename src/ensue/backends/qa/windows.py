"""Question and text as rows of tokens: long texts in overlapping windows, each token with its characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.errors import EnsueError

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """How a text is read: tokens a row, tokens two neighbouring windows share, the most tokens of a question and of
    an answer, and the score above which an answer is given at all."""

    max_length: int = 384
    stride: int = 128
    max_question: int = 64
    max_answer: int = 30
    threshold: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_length", "max_question", "max_answer"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise EnsueError(f"A {name} of {getattr(self, name)} will not do: it is 1 or more.")
        if not isinstance(self.stride, int) or self.stride < 0:
            raise EnsueError(f"A stride of {self.stride} will not do: it is 0 or more.")


class Tokens(NamedTuple):
    """A text's tokens, and the characters each was made of."""

    ids: Ints
    offsets: Ints


class Window(NamedTuple):
    """Tokens `begin` to `end` of a text, behind a question; `first` is where the row has the first of them."""

    begin: int
    end: int
    first: int
    length: int


class PairForm:
    """How a tokenizer joins two texts into a row: the special tokens before, between and after, and their types."""

    def __init__(self, tokenizer: Any) -> None:
        if not tokenizer.is_fast:
            raise EnsueError(
                f"{tokenizer.name_or_path} has a tokenizer without character positions, which answering needs; "
                f"use a folder with a tokenizer.json."
            )
        self.tokenizer = tokenizer
        found = tokenizer("a", "a", return_token_type_ids=True)
        owners = found.sequence_ids(0)
        ids, types = found["input_ids"], found.get("token_type_ids") or [0] * len(owners)
        asked, told = owners.index(0), owners.index(1)
        middle, end = asked + owners.count(0), told + owners.count(1)
        self.before, self.between, self.after = ids[:asked], ids[middle:told], ids[end:]
        self.types = (types[:asked], types[asked], types[middle:told], types[told], types[end:])
        self.typed = "token_type_ids" in tokenizer.model_input_names
        # "No answer" is said at the first token of the model's own, as SQuAD 2.0's systems do.
        specials = [place for place, token in enumerate(ids) if token == tokenizer.cls_token_id]
        self.null = specials[0] if specials else 0
        if self.null >= asked:
            raise EnsueError(
                f"{tokenizer.name_or_path} puts no token of its own first, so it cannot say that there is no answer."
            )

    @property
    def specials(self) -> int:
        """How many tokens of a row are neither question nor text."""
        return len(self.before) + len(self.between) + len(self.after)

    def tokens(self, texts: Sequence[str], limit: int | None = None) -> list[Tokens]:
        """Each text by itself, cut at so many tokens."""
        if not texts:
            return []
        found = self.tokenizer(
            list(texts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        return [
            Tokens(
                np.array(ids[:limit], dtype=np.int64), np.array(places[:limit], dtype=np.int64).reshape(-1, 2)
            )
            for ids, places in zip(found["input_ids"], found["offset_mapping"], strict=True)
        ]

    def windows(self, question: Tokens, text: Tokens, reading: Reading) -> list[Window]:
        """Windows over a text, each sharing its first `stride` tokens with the one before; none of an empty text."""
        asked = len(question.ids)
        room = reading.max_length - self.specials - asked
        if room <= reading.stride and room < len(text.ids):
            raise EnsueError(
                f"Rows of {reading.max_length} tokens leave {max(room, 0)} for the text beside a question of "
                f"{asked}, no more than the {reading.stride} that windows share; allow longer rows or "
                f"a smaller stride."
            )
        first = len(self.before) + asked + len(self.between)
        found, begin = [], 0
        while begin < len(text.ids):
            end = min(begin + room, len(text.ids))
            found.append(Window(begin, end, first, self.specials + asked + end - begin))
            if end == len(text.ids):
                break
            begin = end - reading.stride
        return found

    def row(self, question: Tokens, text: Tokens, window: Window) -> tuple[list[int], list[int]]:
        """Ids and types of one row."""
        asked, told = question.ids.tolist(), text.ids[window.begin : window.end].tolist()
        before, one, between, two, after = self.types
        types = [*before, *[one] * len(asked), *between, *[two] * len(told), *after]
        return [*self.before, *asked, *self.between, *told, *self.after], types


def best_spans(
    starts: npt.NDArray[np.float32],
    ends: npt.NDArray[np.float32],
    firsts: Sequence[int],
    counts: Sequence[int],
    longest: int,
) -> tuple[npt.NDArray[np.float32], Ints, Ints]:
    """Of each row the best sum of a start and an end that is not before it nor `longest` tokens on, and where.

    Starts and ends are rows × tokens; the text of a row stands at tokens `firsts` to `firsts + counts`. Of equal sums
    the shortest span wins, then the earliest.
    """
    places = np.arange(starts.shape[1])[None]
    low = np.asarray(firsts)[:, None]
    inside = (places >= low) & (places < low + np.asarray(counts)[:, None])
    starts = np.where(inside, starts, -np.inf).astype(np.float32)
    ends = np.where(inside, ends, -np.inf).astype(np.float32)
    rows = np.arange(len(starts))
    best = np.full(len(starts), -np.inf, np.float32)
    begin, finish = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)
    for apart in range(min(longest, starts.shape[1])):
        sums = starts[:, : starts.shape[1] - apart] + ends[:, apart:]
        place = sums.argmax(1)
        value = sums[rows, place]
        better = value > best
        best = np.where(better, value, best)
        begin, finish = np.where(better, place, begin), np.where(better, place + apart, finish)
    return best, begin, finish
