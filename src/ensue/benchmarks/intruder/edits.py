"""Edits that make one sentence of a document not follow, each by a rule.

- `random`: a sentence is replaced by one of another document;
- `hard`: by the one of another document that is nearest in its words, from about the same position;
- `swapped`: two sentences a paragraph apart change places;
- `negated`: a statement is turned into its opposite;
- `entity`: a name or number becomes one of another document.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import numpy as np

KINDS = ("random", "hard", "swapped", "negated", "entity")
# Made with English verbs: "was" and "will" are words of German, too, and no verbs of its main clauses.
ENGLISH = ("negated",)
# Two sentences of neighbouring paragraphs are so far apart in most prose.
_NEAREST_SWAP, _FURTHEST_SWAP = 3, 6
# A candidate that shares more of its words than this is a near copy (a caption, a repeated notice).
_NEAR_COPY = 0.7
# How far the relative position of a hard intruder may lie from the place it takes.
_POSITION = 0.25
# A word in more sentences than this, and than one in twenty, says little of what a sentence is about.
_COMMON = 50
# How often something of another document is drawn before a place is given up.
_DRAWS = 100
# Scripts that set no space between words: there each letter counts.
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+|\d+")
# Within a sentence: at its beginning any word has a capital.
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][\w-]+(?: [A-Z][\w-]+)*")
# Possessive, so that of "21st" nothing is taken.
_NUMBER = re.compile(r"\b\d++(?:[.,]\d++)*+(?!st|nd|rd|th)")
_VERBS = "is|are|was|were|will|would|can|could|should|shall|must|may|might"
# As verbs of the main clause they take no "not": "he has a dog".
_HAVE = (
    r"(?:has|have|had)(?= (?:been|become|come|done|found|gone|got|had|held|kept|led|left|lost|made|met|paid|put|"
    r"said|sent|set|sold|told|won|\w+ed|\w+en)\b)"
)
_STATED = re.compile(
    rf"(?<!\ba )(?<!\bthe )(?<!\bhis )(?<!\bher )\b(?:{_VERBS}|{_HAVE})\b(?= [a-z])"
    r"(?! (?:not|no|never|none|nothing|nobody|neither|nor|hardly|only)\b)"
)
_NEGATED = re.compile(
    rf"\b(?:(?P<can>cannot|can[’']t)|(?P<will>won[’']t)|(?P<verb>{_VERBS}|has|have|had|do|does|did)(?:n[’']t| not))\b"
    r"(?! only\b)"
)


class Edited(NamedTuple):
    """A document with one edit: its sentences, the places that no longer follow, and the kind of edit."""

    sentences: tuple[str, ...]
    places: tuple[int, ...]
    kind: str


class Pool:
    """The sentences of a collection of two documents or more, to draw intruders from; documents go by number."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        if len(documents) < 2:
            raise ValueError("An intruder comes from another document, so there must be two.")
        self.documents = documents

    def random(self, number: int, generator: Random) -> str:
        """Draw a sentence of another document."""
        other = generator.randrange(len(self.documents) - 1)
        return generator.choice(self.documents[other + (other >= number)])

    def nearest(self, number: int, place: int) -> Iterator[str]:
        """Yield sentences of other documents, at about the same position, those that share the rarest words first."""
        return self._index.nearest(number, place)

    @cached_property
    def _index(self) -> _Index:
        return _Index(self.documents)


class _Index:
    """Sentences as vectors of their words, weighed by how rare they are, to find the nearest of one."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        from scipy.sparse import csr_array, diags_array

        self._sentences = [sentence for sentences in documents for sentence in sentences]
        lengths = np.array([len(sentences) for sentences in documents])
        self._starts = np.cumsum(lengths) - lengths
        self._document = np.repeat(np.arange(len(documents)), lengths)
        places = np.arange(len(self._sentences)) - self._starts[self._document]
        self._position = places / np.maximum(1, lengths - 1)[self._document]
        known: dict[str, int] = {}
        words, counts, ends = array("q"), array("d"), array("q", [0])
        for sentence in self._sentences:
            for word, count in _words(sentence).items():
                words.append(known.setdefault(word, len(known)))
                counts.append(count)
            ends.append(len(words))
        shape = (len(self._sentences), len(known))
        table: Any = csr_array((np.array(counts), np.array(words), np.array(ends)), shape=shape)
        found = np.bincount(np.array(words), minlength=len(known))
        rarity = np.log(shape[0] / np.maximum(1, found))
        table = table @ diags_array(rarity)
        norms = np.sqrt(table.power(2).sum(axis=1))
        self._vectors = (diags_array(1.0 / np.maximum(norms, 1e-12)) @ table).tocsr()
        common = found > max(_COMMON, shape[0] // 20)
        self._by_word = (self._vectors @ diags_array((~common).astype(float))).T.tocsr()
        self._by_word.eliminate_zeros()

    def nearest(self, number: int, place: int) -> Iterator[str]:
        row = int(self._starts[number]) + place
        likeness: Any = self._vectors[[row]] @ self._by_word
        likeness.sort_indices()
        rows, values = likeness.indices, likeness.data
        near = np.abs(self._position[rows] - self._position[row]) <= _POSITION
        fit = near & (self._document[rows] != number) & (values > 0.0)
        rows, values = rows[fit], values[fit]
        own = _words(self._sentences[row])
        for other in rows[np.argsort(-values, kind="stable")]:
            sentence = self._sentences[other]
            if _shared(own, _words(sentence)) <= _NEAR_COPY:
                yield sentence


def edit(number: int, kind: str, pool: Pool, places: Sequence[int], generator: Random) -> Edited | None:
    """Make one edit of a document, at the first of the places that allows it; None where none does."""
    sentences = pool.documents[number]
    for place in places:
        if kind == "swapped":
            other = _swapped_with(sentences, place, generator)
            new = {} if other is None else {place: sentences[other], other: sentences[place]}
        else:
            found = _REPLACEMENTS[kind](number, place, pool, generator)
            new = {} if found is None else {place: found}
        if new:
            changed = tuple(new.get(at, sentence) for at, sentence in enumerate(sentences))
            return Edited(changed, tuple(sorted(new)), kind)
    return None


def _swapped_with(sentences: Sequence[str], place: int, generator: Random) -> int | None:
    far = [
        other
        for other in range(1, len(sentences))
        if _NEAREST_SWAP <= abs(other - place) <= _FURTHEST_SWAP and sentences[other] != sentences[place]
    ]
    return generator.choice(far) if far else None


def drawn_intruder(
    number: int, place: int, kind: str, pool: Pool, generator: Random, among: int = 1
) -> str | None:
    """Draw a sentence of another document for a place: any (`random`), or one of the `among` nearest (`hard`)."""
    if kind == "random":
        candidates = (pool.random(number, generator) for _ in range(_DRAWS))
        return next(_strange(pool.documents[number], candidates), None)
    near = list(islice(_strange(pool.documents[number], pool.nearest(number, place)), among))
    return None if not near else near[0] if among == 1 else generator.choice(near)


def _random(number: int, place: int, pool: Pool, generator: Random) -> str | None:
    return drawn_intruder(number, place, "random", pool, generator)


def _hard(number: int, place: int, pool: Pool, generator: Random) -> str | None:
    return drawn_intruder(number, place, "hard", pool, generator)


def _strange(own: Sequence[str], candidates: Iterator[str]) -> Iterator[str]:
    """Leave out what the document has itself: collections hold some texts twice."""
    return (sentence for sentence in candidates if sentence not in own)


def _opposite(number: int, place: int, pool: Pool, generator: Random) -> str | None:
    return negated(pool.documents[number][place], generator)


def negated(sentence: str, generator: Random) -> str | None:
    """Turn an English statement into its opposite at one of its verbs; None where there is none to turn.

    >>> negated("The court was closed.", Random(0)), negated("It isn't over on the island.", Random(0))
    ('The court was not closed.', 'It is over on the island.')
    """
    found = [*_STATED.finditer(sentence), *_NEGATED.finditer(sentence)]
    if not found:
        return None
    one = generator.choice(found)
    verb = f"{one[0]} not" if one.re is _STATED else _stated_again(one)
    return sentence[: one.start()] + verb + sentence[one.end() :]


def _stated_again(negation: re.Match[str]) -> str:
    return "can" if negation["can"] else "will" if negation["will"] else negation["verb"]


def _with_other_entity(number: int, place: int, pool: Pool, generator: Random) -> str | None:
    """Put a name or number of another document in the place of one; None where the sentence has none."""
    own = pool.documents[number]
    sentence = own[place]
    patterns = [pattern for pattern in (_NAME, _NUMBER) if pattern.search(sentence)]
    if not patterns:
        return None
    pattern = generator.choice(patterns)
    one = generator.choice(list(pattern.finditer(sentence)))
    for _ in range(_DRAWS):
        found = pattern.findall(pool.random(number, generator))
        other = generator.choice(found) if found else ""
        if other and not any(other in text for text in own):
            return sentence[: one.start()] + other + sentence[one.end() :]
    return None


_REPLACEMENTS: dict[str, Callable[[int, int, Pool, Random], str | None]] = {
    "random": _random,
    "hard": _hard,
    "negated": _opposite,
    "entity": _with_other_entity,
}


def _words(sentence: str) -> Counter[str]:
    return Counter(word.lower() for word in _WORD.findall(sentence))


def _shared(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of words that two sentences have in common.

    >>> _shared(Counter("aab"), Counter("ab"))
    0.6666666666666666
    """
    return sum((one & other).values()) / max(1, sum((one | other).values()))
