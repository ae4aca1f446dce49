"""Negative suffixes: which ones an example gets, and the gold's chapter index put on each of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from ensue.benchmarks.chapterbreak.data.examples import NEGATIVES, Boundary, Example
from ensue.text.works.headings import looks_like_title, split_index

OutOfBook = Literal["same-split", "other-split"]
T = TypeVar("T")

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Suffix(NamedTuple):
    """A gold suffix that may serve as a negative elsewhere."""

    split: str
    work: str
    boundary: Boundary
    text: str


def generator(seed: int, work: str, boundary: str, number: int | str) -> np.random.Generator:
    """Return random numbers that depend on the seed and the example alone, not on its neighbours or on --limit."""
    key = f"{seed}\0{work}\0{boundary}\0{number}".encode("utf-8", "surrogatepass")
    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(key).digest()[:16], "big")))


def with_index(gold: str, text: str) -> str:
    """Put the gold's chapter index before a text in place of its own, or none if the gold has none.

    >>> with_index("CHAPTER III.\\n\\nIt rained.", "CHAPTER IX. The Fair\\n\\nNobody came.")
    'CHAPTER III. The Fair\\n\\nNobody came.'
    """
    index, after = split_index(gold)
    own, rest = split_index(text)
    if not index:
        return rest.lstrip() if own else text
    if own and not rest[:1].isalnum():
        return index + rest
    text = rest  # it has no index, or one like "CHAPTER 9The Fair", where nothing divides it from the title
    joint = after[: len(after) - len(after.lstrip())]
    if "\n" not in joint and not looks_like_title(text.split("\n", 1)[0]):
        joint = ""  # a title may stand on the line of the index, running text may not
    return index + (joint or "\n\n") + text


def draw(gold: str, texts: Iterable[str], count: int) -> list[str]:
    """Return the first `count` texts, none of them the gold's and no two alike."""
    chosen: dict[str, None] = {}
    for text in texts:
        if text.strip() and text != gold:
            chosen.setdefault(text)
            if len(chosen) == count:
                break
    return list(chosen)


def shuffled(candidates: Sequence[T], random: np.random.Generator) -> Iterator[T]:
    """Yield the candidates in random order."""
    for place in random.permutation(len(candidates)):
        yield candidates[int(place)]


class Pool:
    """Suffixes to draw out-of-book negatives from."""

    def __init__(self, suffixes: Iterable[Suffix], kind: OutOfBook) -> None:
        self.kind = kind
        self._groups: dict[tuple[Boundary, str], list[Suffix]] = {}
        for suffix in suffixes:
            self._groups.setdefault((suffix.boundary, suffix.split), []).append(suffix)
        self._fitting: dict[tuple[Boundary, str], list[Suffix]] = {}

    def negatives(self, example: Example, seed: int, count: int = NEGATIVES) -> list[str]:
        """Draw up to `count` negatives for an example, none from its own work."""
        random = generator(seed, example.id, self.kind, "out of book")
        others = (s for s in shuffled(self._for(example), random) if s.work != example.work)
        if example.boundary == "chapter":
            return draw(example.gold, (with_index(example.gold, s.text) for s in others), count)
        return draw(example.gold, (s.text for s in others), count)

    def give(self, examples: Iterable[Example], seed: int, count: int) -> tuple[list[Example], Counter[str]]:
        """Return the examples with negatives of other works; count those that have too few to choose from."""
        found: list[Example] = []
        skipped: Counter[str] = Counter()
        for example in examples:
            negatives = self.negatives(example, seed, count)
            if len(negatives) == count:
                found.append(replace(example, negatives=tuple(negatives)))
            else:
                reason = f"examples for which other works have fewer than {number_words(count)} suffixes"
                skipped[reason] += 1
        return found, skipped

    def _for(self, example: Example) -> list[Suffix]:
        """Return the suffixes of the example's boundary and, by kind, of its split or of all others."""
        key = example.boundary, example.split
        if key not in self._fitting:
            self._fitting[key] = [
                suffix
                for (boundary, split), group in self._groups.items()
                if boundary == example.boundary and (split == example.split) == (self.kind == "same-split")
                for suffix in group
            ]
        return self._fitting[key]


def out_of_book(
    examples: Sequence[Example], kind: OutOfBook, seed: int, count: int = NEGATIVES
) -> tuple[list[Example], Counter[str]]:
    """Give the examples gold suffixes of one another's works as negatives."""
    return Pool(map(suffix_of, examples), kind).give(examples, seed, count)


def suffix_of(example: Example) -> Suffix:
    return Suffix(example.split, example.work, example.boundary, example.gold)


def number_words(count: int) -> str:
    """Write a number as in a sentence.

    >>> number_words(5), number_words(12)
    ('five', '12')
    """
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def reservoir(suffixes: Iterable[Suffix], size: int, seed: int) -> list[Suffix]:
    """Keep at most `size` suffixes of each boundary, every one as likely as any other, in bounded memory."""
    kept: dict[Boundary, list[Suffix]] = {}
    seen: Counter[Boundary] = Counter()
    random = generator(seed, "", "", "reservoir")
    for suffix in suffixes:
        chosen = kept.setdefault(suffix.boundary, [])
        seen[suffix.boundary] += 1
        if len(chosen) < size:
            chosen.append(suffix)
        elif (place := int(random.integers(seen[suffix.boundary]))) < size:
            chosen[place] = suffix
    return [suffix for chosen in kept.values() for suffix in chosen]
