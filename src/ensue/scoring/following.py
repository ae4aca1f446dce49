"""How well each sentence of a text follows: what the text before gives to it, and it to the sentence after.

A sentence that belongs is more likely after the text before it than on its own, and makes the beginning of the next
one more likely than it would be without it. Both differences are pointwise mutual information, in nats. An encoder
may add how like the sentence is to those around it, a reader whether it belongs there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ensue.models.protocols import Encoder, Reader, Scorer
from ensue.models.request import Policy, Request, Score
from ensue.progress import Progress
from ensue.scoring.engine import Scored, score
from ensue.scoring.journal import Journal
from ensue.scoring.surprisal import ends_in, joined_ends

# What stands before a sentence that is read on its own: the end of a paragraph that is not there.
_NOTHING = "\n\n"
# A sentence is read after at least so many characters of text, where there are as many, and at most three times that.
_CONTEXT = 6_000
# A text too long for the model is read in windows, a context that does not fit is cut at its beginning.
POLICY = Policy(window="strided", overflow="truncate")
# What a sentence gives shows in the first words of the next: more of them say no more (bench/results/intruder.md).
_HEAD = 8
# How many sentences on each side are around one, and with how many of them it is compared, those most like it.
_AROUND, _NEAREST = 20, 3


class Following(NamedTuple):
    """How well a sentence follows.

    `received` is its log-likelihood after the text before it less that on its own, `given` the log-likelihood of
    the first words of the next sentence with it less that without it, both in nats; the first sentence receives
    nothing that could be measured, and neither it nor the last gives any. `gain` is `received` per token, `share`
    the share of its surprisal on its own that the text before it takes away. `likeness` is its mean cosine with the
    three most like it of the sentences around it; None without an encoder and where there are no others. `logprob`
    is its log-likelihood after the text before it. `belonging` is what a reader says of it, as a logit; None
    without one.
    """

    tokens: int
    received: float | None
    given: float | None
    likeness: float | None
    logprob: float | None = None
    belonging: float | None = None

    @property
    def gain(self) -> float | None:
        """Surprisal without context less surprisal in context, in nats a token."""
        return None if self.received is None or not self.tokens else self.received / self.tokens

    @property
    def share(self) -> float | None:
        """The share of its surprisal on its own that the text before takes away; of next to none, of one nat."""
        if self.received is None or self.logprob is None:
            return None
        return self.received / max(1.0, self.received - self.logprob)


class Pieces(NamedTuple):
    """A text cut where its sentences end: what stands between two goes with the second."""

    text: str
    ends: tuple[int, ...]

    @classmethod
    def of(cls, text: str, sentences: Sequence[str]) -> Pieces:
        """Cut a text into the sentences it was split into.

        >>> Pieces.of("One.\\n\\nTwo.", ["One.", "Two."])[1]
        (4, 10)
        """
        return cls(text, tuple(ends_in(text, sentences)))

    @classmethod
    def joined(cls, sentences: Sequence[str], joiner: str = " ") -> Pieces:
        """Make a text of sentences."""
        return cls(joiner.join(sentences), tuple(joined_ends(sentences, joiner)))

    def piece(self, place: int) -> str:
        return self.text[self.begin(place) : self.ends[place]]

    def begin(self, place: int) -> int:
        return self.ends[place - 1] if place else 0

    def stripped(self) -> list[str]:
        """Return the sentences without what stands between them."""
        return [self.piece(place).strip() for place in range(len(self.ends))]


class Measured(NamedTuple):
    """The measures of a text's sentences, and the score of the whole text, with its tokens."""

    whole: Score
    sentences: list[Following]


def measure(
    scorer: Scorer,
    texts: Sequence[Pieces],
    *,
    encoder: Encoder | None = None,
    reader: Reader | None = None,
    policy: Policy | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> tuple[list[Measured], Scored]:
    """Measure how well every sentence of every text follows, and score the texts, from one batch of the engine."""
    found, scored = follow(
        scorer,
        texts,
        beside=[Request(text.text, detail=True) for text in texts],
        encoder=encoder,
        reader=reader,
        policy=policy,
        journal=journal,
        progress=progress,
    )
    return [Measured(*each) for each in zip(scored.scores, found, strict=False)], scored


def follow(
    scorer: Scorer,
    texts: Sequence[Pieces],
    *,
    beside: Sequence[Request] = (),
    encoder: Encoder | None = None,
    reader: Reader | None = None,
    policy: Policy | None = None,
    journal: Journal | None = None,
    progress: Progress | None = None,
) -> tuple[list[list[Following]], Scored]:
    """Measure how well every sentence of every text follows; what is asked `beside` has the first of the scores."""
    asked = [_requests(text) for text in texts]
    requests = [*beside, *chain.from_iterable(asked)]
    scored = score(scorer, requests, policy=policy or POLICY, journal=journal, progress=progress)
    vectors = None if encoder is None else _vectors(encoder, texts)
    read = None if reader is None else reader.read([text.stripped() for text in texts])
    found, at, row = [], len(beside), 0
    for number, (text, own) in enumerate(zip(texts, asked, strict=True)):
        count = len(text.ends)
        likeness = None if vectors is None else like_those_around(vectors[row : row + count])
        belonging = None if read is None else read[number]
        found.append(_followings(text, scored.scores[at : at + len(own)], likeness, belonging))
        at, row = at + len(own), row + count
    return found, scored


def _requests(text: Pieces) -> list[Request]:
    """Return what is asked of one text: each sentence in context and alone, its head without the one before it."""
    starts = context_starts(text.ends)
    count = len(text.ends)
    before = [text.text[starts[place] : text.begin(place)] for place in range(count)]
    later = range(1, count)
    in_context = [Request(text.piece(place), before[place], detail=True) for place in later]
    alone = [Request(text.piece(place).lstrip(), _NOTHING) for place in later]
    # From where its context with the sentence begins, so that the sentence is all that differs.
    without = [
        Request(head_of(text.piece(place)), text.text[starts[place] : text.begin(place - 1)] or _NOTHING)
        for place in later[1:]
    ]
    return in_context + alone + without


def _followings(
    text: Pieces,
    scores: Sequence[Score],
    likeness: npt.NDArray[np.float64] | None,
    belonging: Sequence[float] | None,
) -> list[Following]:
    count = len(text.ends)
    in_context, alone, without = (
        scores[: count - 1],
        scores[count - 1 : 2 * count - 2],
        scores[2 * count - 2 :],
    )
    received = [None, *(one.logprob - other.logprob for one, other in zip(in_context, alone, strict=True))]
    given = [None, *map(_given, in_context[1:], without), None]
    return [
        Following(
            in_context[place - 1].tokens if place else 0,
            received[place],
            given[place],
            None if likeness is None or count == 1 else float(likeness[place]),
            in_context[place - 1].logprob if place else None,
            None if belonging is None else belonging[place],
        )
        for place in range(count)
    ]


def head_of(piece: str, words: int = _HEAD) -> str:
    """Return the first words of a sentence, with what stands before it.

    >>> head_of(" One two three, four five six seven eight nine ten.")
    ' One two three, four five six seven eight'
    """
    found = re.match(rf"\s*\S+(?:\s+\S+){{0,{words - 1}}}", piece)
    return found[0] if found else piece


def _given(in_context: Score, head: Score) -> float | None:
    """Return the log-likelihood of a sentence's first words in context less that without the sentence before.

    None where a model does not say what each token has.
    """
    if in_context.token_logprobs is None:
        return None
    return math.fsum(in_context.token_logprobs[: head.tokens]) - head.logprob


def context_starts(ends: Sequence[int]) -> list[int]:
    """Return where the context of each sentence begins: at the text's beginning, in long texts at a later sentence.

    It moves on in strides, so that most sentences share the beginning of their context with those before them.

    >>> context_starts([4_000, 8_000, 12_000, 16_000, 20_000, 24_000])
    [0, 0, 0, 0, 0, 12000]
    """
    starts, begin = [], 0
    borders = [0, *ends]
    for place in range(len(ends)):
        if borders[place] - begin > 3 * _CONTEXT:
            begin = max(border for border in borders[:place] if borders[place] - border >= _CONTEXT)
        starts.append(begin)
    return starts


def _vectors(encoder: Encoder, texts: Sequence[Pieces]) -> npt.NDArray[np.float64]:
    """Return a vector of length one for every sentence of every text."""
    pieces = [piece for text in texts for piece in text.stripped()]
    places: dict[str, int] = {}
    for piece in pieces:
        places.setdefault(piece, len(places))
    found = np.asarray(encoder.encode(list(places)), dtype=np.float64)
    found /= np.linalg.norm(found, axis=1, keepdims=True).clip(1e-12)
    return found[[places[piece] for piece in pieces]]


def like_those_around(vectors: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return how like each sentence is to those around it that are most like it: the mean cosine with three of them.

    >>> like_those_around(np.eye(2)[[0, 0, 1, 0, 0]]).round(2).tolist()
    [1.0, 1.0, 0.0, 1.0, 1.0]
    """
    count = len(vectors)
    found = np.zeros(count)
    for place in range(count):
        begin = max(0, place - _AROUND)
        others = np.delete(vectors[begin : place + _AROUND + 1], place - begin, axis=0)
        if len(others):
            found[place] = np.sort(others @ vectors[place])[-_NEAREST:].mean()
    return found
