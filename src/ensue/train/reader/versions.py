"""Windows of documents in which some sentences are of other documents, as a reader learns from them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from ensue.benchmarks.intruder.edits import Pool, drawn_intruder
from ensue.parallel import ordered_map
from ensue.text.documents import Document

# A window of fewer sentences says too little of what belongs.
FEWEST = 5
# How many intruders a window has, and how often.
_COUNTS = ((0, 0.15), (1, 0.6), (2, 0.15), (3, 0.1))
# In a window of fewer sentences than this there is one at most.
_SEVERAL = 10
# Sentences of a usual document: of longer ones a pool has fewer.
_USUAL = 20
RANDOM, HARD = "random", "hard"


class Drawing(NamedTuple):
    """How windows and intruders are drawn: so many rounds over each document, the share of hard intruders, among how
    many nearest one is drawn, the documents of a pool, and the most sentences of a window."""

    versions: int = 6
    hard: float = 0.6
    nearest: int = 8
    pool: int = 400
    max_sentences: int = 32
    seed: int = 0


class Window(NamedTuple):
    """Sentences of a document, by place, and what stands at some of them instead, with its kind."""

    document: int
    begin: int
    end: int
    intruders: tuple[tuple[int, str, str], ...]


class Version(NamedTuple):
    """The numbers of a window's sentences, and the places in it of intruders, with their kinds."""

    sentences: tuple[int, ...]
    intruders: tuple[tuple[int, str], ...]


class Versions(NamedTuple):
    """All sentences, each once, the windows made of them, and how many documents they are of."""

    sentences: list[str]
    versions: list[Version]
    documents: int


def draw_versions(documents: Sequence[Document], drawing: Drawing, workers: int = 1) -> Versions:
    """Cut documents into windows and put intruders of other documents of their domain into most of them."""
    pools = list(_pools(documents, drawing.pool))
    drawn = ordered_map(
        partial(_of_pool, drawing=drawing),
        [(number, [one.sentences for one in pool]) for number, pool in enumerate(pools)],
        min(workers, len(pools)) or 1,
    )
    numbers: dict[str, int] = {}
    versions: list[Version] = []
    for pool, windows in zip(pools, drawn, strict=True):
        for window in windows:
            own = list(pool[window.document].sentences[window.begin : window.end])
            for place, sentence, _ in window.intruders:
                own[place] = sentence
            places = tuple((place, kind) for place, _, kind in window.intruders)
            versions.append(Version(tuple(numbers.setdefault(one, len(numbers)) for one in own), places))
    return Versions(list(numbers), versions, sum(map(len, pools)))


def _pools(documents: Sequence[Document], size: int) -> Iterator[list[Document]]:
    """Yield documents of one domain in pools of about `size`, fewer where they are long; one alone has no other."""
    domains: dict[str, list[Document]] = {}
    for one in documents:
        if len(one.sentences) >= FEWEST:
            domains.setdefault(one.domain, []).append(one)
    for found in domains.values():
        if len(found) > 1:
            most = max(len(found) / size, sum(len(one.sentences) for one in found) / (size * _USUAL))
            count = max(1, min(math.ceil(most), len(found) // 2))
            yield from (found[part::count] for part in range(count))


def _of_pool(given: tuple[int, Sequence[Sequence[str]]], drawing: Drawing) -> list[Window]:
    number, documents = given
    generator = Random(f"{drawing.seed} {number}")
    pool = Pool(documents)
    return [
        Window(document, begin, end, _intruders(pool, document, begin, end, drawing, generator))
        for _ in range(drawing.versions)
        for document, sentences in enumerate(documents)
        for begin, end in windows_in(len(sentences), drawing.max_sentences, generator)
    ]


def windows_in(count: int, most: int, generator: Random) -> Iterator[tuple[int, int]]:
    """Cut so many sentences into windows, half of them as long as may be, the others of any length.

    >>> [end - begin for begin, end in windows_in(12, 12, Random(3))]
    [12]
    """
    begin = 0
    while count - begin >= FEWEST:
        length = most if generator.random() < 0.5 else generator.randint(FEWEST, most)
        end = min(count, begin + length)
        yield begin, end
        begin = end


def _intruders(
    pool: Pool, document: int, begin: int, end: int, drawing: Drawing, generator: Random
) -> tuple[tuple[int, str, str], ...]:
    """Draw what stands at some places of a window, never at its first."""
    count = generator.choices([one for one, _ in _COUNTS], [share for _, share in _COUNTS])[0]
    if end - begin < _SEVERAL:
        count = min(1, count)
    found = []
    for place in sorted(generator.sample(range(begin + 1, end), count)):
        kind = HARD if generator.random() < drawing.hard else RANDOM
        sentence = drawn_intruder(document, place, kind, pool, generator, drawing.nearest)
        if sentence is not None:
            found.append((place - begin, sentence, kind))
    return tuple(found)
