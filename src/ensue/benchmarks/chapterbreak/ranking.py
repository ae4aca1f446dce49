"""How a model ranks suffixes: by the mean log-likelihood of their tokens, or as whole segments."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, overload

from ensue.benchmarks.chapterbreak.data.examples import Example
from ensue.errors import EnsueError
from ensue.models.protocols import Scorer, SuffixScorer, each_call, portion_of, room_of
from ensue.models.request import Policy, Request, Score, TokenCut
from ensue.progress import Progress
from ensue.records import Records, digest_of, plain
from ensue.scoring.engine import choices, score
from ensue.scoring.finite import beginning, not_finite
from ensue.scoring.journal import Journal

# Examples scored in one go: their tokens are held at once. A GPU fills its rows across them, and waits after each go.
_TOGETHER, _ON_GPU = 16, 128
_WORD = re.compile(r"\S+")
# What a run keeps of a segment-level model: its scores of an example's suffixes, a row for each prefix.
_SUFFIXES = plain("suffixes")


@dataclass(frozen=True)
class SuffixChoice:
    """An example and its suffixes: the gold one, and the negatives by kind."""

    example: Example
    negatives: dict[str, tuple[str, ...]]

    @property
    def suffixes(self) -> list[str]:
        """Return every suffix once, the gold one first."""
        return list(
            dict.fromkeys([self.example.gold, *(text for texts in self.negatives.values() for text in texts)])
        )


class Questions(Sequence[SuffixChoice]):
    """The choices that examples at these places make; each is put together when it is asked for.

    `kinds` has the drawn negatives of each kind by the example's id; None stands for the example's own.
    """

    def __init__(
        self,
        examples: Sequence[Example],
        places: Sequence[int],
        kinds: Mapping[str, Mapping[str, tuple[str, ...]] | None],
    ) -> None:
        self._examples, self._places, self._kinds = examples, places, kinds

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> SuffixChoice: ...
    @overload
    def __getitem__(self, place: slice) -> list[SuffixChoice]: ...
    def __getitem__(self, place: int | slice) -> SuffixChoice | list[SuffixChoice]:
        if isinstance(place, slice):
            return [self._made(one) for one in self._places[place]]
        return self._made(self._places[place])

    def _made(self, place: int) -> SuffixChoice:
        example = self._examples[place]
        negatives = {
            kind: example.negatives if drawn is None else drawn[example.id]
            for kind, drawn in self._kinds.items()
            if drawn is None or example.id in drawn
        }
        return SuffixChoice(example, negatives)


class Gold(NamedTuple):
    """The log-likelihood of a gold suffix, its tokens, and the words they cover (None where not known)."""

    logprob: float
    tokens: int
    words: float | None


class Ranked(NamedTuple):
    """The score of each suffix of a question, after a prefix and cut to a suffix length."""

    question: SuffixChoice
    prefix_tokens: int
    suffix_tokens: int
    scores: dict[str, float]
    context_tokens: int | None = None
    gold: Gold | None = None


@dataclass(kw_only=True)
class Ranker(ABC):
    """What both ways of ranking share: suffix lengths, the prefix lengths that fit, and counts of what was done."""

    suffixes: list[int]
    asked: list[int]
    prefixes: list[int] = field(init=False)
    notes: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    tokens: int = 0

    @property
    @abstractmethod
    def signature(self) -> str:
        """Return the model and the rules of its scores."""

    @abstractmethod
    def rank(self, questions: Sequence[SuffixChoice], progress: Progress) -> Iterator[Ranked]:
        """Score the suffixes of each question at every length."""


def ladder(asked: Sequence[int], fit: int | None, notes: Counter[str]) -> list[int]:
    """Return the prefix lengths a model can take: those too long become the longest that fits, once.

    >>> ladder([128, 512, 1024, 2048], 896, Counter())
    [128, 512, 896]
    """
    if fit is None:
        return sorted(set(asked))
    too_long = sum(length > fit for length in asked)
    if too_long:
        notes[f"prefix lengths above {fit} tokens, which do not fit and were cut to that"] += too_long
    return sorted({min(length, fit) for length in asked})


def words_covered(text: str, end: int) -> float:
    """Count the whitespace words that the first `end` characters hold, the last one by the share they reach.

    >>> words_covered("The old bridge", 7), words_covered("The old bridge", 11)
    (2.0, 2.5)
    """
    words = 0.0
    for word in _WORD.finditer(text):
        if word.start() >= end:
            break
        words += (min(word.end(), end) - word.start()) / (word.end() - word.start())
    return words


@dataclass(kw_only=True)
class TokenRanker(Ranker):
    """A language model: prefix and suffix cut in its own tokens, the suffix's mean log-likelihood."""

    model: Scorer
    policy: Policy
    separator: str
    journal: Journal | None

    def __post_init__(self) -> None:
        self.model.check(self.policy)
        room, longest = room_of(self.model, self.policy), max(self.suffixes)
        if room is not None and room <= longest:
            raise EnsueError(
                f"{self.model.card.name} takes {room} tokens, which leaves no prefix before suffixes of {longest}; "
                f"choose shorter ones with --set suffix_tokens=N."
            )
        self.prefixes = ladder(self.asked, None if room is None else room - longest, self.notes)

    @property
    def signature(self) -> str:
        """Return the scorer's own, but for the boundary, which a request cut in tokens decides."""
        return re.sub(r"boundary:\S+", "boundary:apart", choices(self.model, self.policy))

    def rank(self, questions: Sequence[SuffixChoice], progress: Progress) -> Iterator[Ranked]:
        together = portion_of(self.model, on_cpu=_TOGETHER, elsewhere=_TOGETHER, on_gpu=_ON_GPU)
        for begin in range(0, len(questions), together):
            chosen = questions[begin : begin + together]
            requests = [
                self._request(q, text, n) for q in chosen for n in self.prefixes for text in q.suffixes
            ]
            scored = score(
                self.model,
                requests,
                policy=self.policy,
                journal=self.journal,
                progress=_within(progress, begin, len(chosen), len(questions)),
            )
            self.notes.update(scored.notes)
            self.tokens += scored.tokens
            found = zip(scored.scores, scored.context_tokens, strict=True)
            for question in chosen:
                count = len(question.suffixes)
                by_prefix = [[next(found) for _ in range(count)] for _ in self.prefixes]
                yield from self._of_question(question, by_prefix)

    def _request(self, question: SuffixChoice, text: str, prefix: int) -> Request:
        # Shorter suffixes are read off the tokens of the longest; the gold one's tokens also tell its words.
        detail = len(self.suffixes) > 1 or text == question.example.gold
        cut = TokenCut(prefix, max(self.suffixes))
        return Request(self.separator + text, question.example.context, detail=detail, cut=cut)

    def _of_question(
        self, question: SuffixChoice, by_prefix: list[list[tuple[Score, int | None]]]
    ) -> Iterator[Ranked]:
        if any(found.tokens == 0 for found, _ in by_prefix[0]):
            self.skipped["examples with a suffix of which no token is scored"] += 1
            return
        for length in self.suffixes:
            short = sum(found.tokens < length for found, _ in by_prefix[0])
            self.notes[f"suffixes shorter than {length} tokens"] += short
        for prefix, row in zip(self.prefixes, by_prefix, strict=True):
            used = row[0][1]
            self.notes[f"contexts shorter than {prefix} tokens"] += used is not None and used < prefix
            for length in self.suffixes:
                pairs = zip(question.suffixes, row, strict=True)
                scores = {text: _mean(found, length) for text, (found, _) in pairs}
                gold = _gold(self.separator + question.example.gold, row[0][0], length)
                yield Ranked(question, prefix, length, scores, used, gold)


def _mean(found: Score, length: int) -> float:
    """Return the mean log-likelihood of the first tokens."""
    if found.tokens <= length or found.token_logprobs is None:
        return found.logprob_per_token
    return math.fsum(found.token_logprobs[:length]) / length


def _gold(text: str, found: Score, length: int) -> Gold:
    logprobs, spans = found.token_logprobs or (), found.token_spans
    words = words_covered(text, max(end for _, end in spans[:length])) if spans else None
    return Gold(math.fsum(logprobs[:length]), min(found.tokens, length), words)


def _within(progress: Progress, begin: int, count: int, total: int) -> Progress:
    """Report progress in examples out of that of one group in tokens."""
    return lambda done, of, _: progress(begin + (count * done // of if of else count), total, "examples")


@dataclass(kw_only=True)
class SegmentRanker(Ranker):
    """A model that ranks whole suffixes, which it divides into tokens and segments itself."""

    model: SuffixScorer
    records: Records = field(default_factory=Records)

    def __post_init__(self) -> None:
        self.prefixes = ladder(self.asked, self.model.max_prefix_tokens, self.notes)

    @property
    def signature(self) -> str:
        card = self.model.card
        return f"model:{card.signed_name} weights:{card.identity.get('weights', '-')[:12]} suffixes:segments"

    def rank(self, questions: Sequence[SuffixChoice], progress: Progress) -> Iterator[Ranked]:
        keys = {
            (place, length): self._key(question, length)
            for place, question in enumerate(questions)
            for length in self.suffixes
        }
        # What an interrupted run had scored is read from its records.
        missing = {
            key: (questions[place], length)
            for (place, length), key in keys.items()
            if not self.records.has(_SUFFIXES, key)
        }
        scored = each_call(self.model, self._scores, missing.values())
        for place, question in enumerate(questions):
            for length in self.suffixes:
                key = keys[place, length]
                if not self.records.has(_SUFFIXES, key):
                    self.records.add(_SUFFIXES, [(key, next(scored))])
                for prefix, row in zip(self.prefixes, self.records.get(_SUFFIXES, key) or (), strict=True):
                    scores = dict(zip(question.suffixes, row, strict=True))
                    yield Ranked(question, prefix, length, scores)
            progress(place + 1, len(questions), "examples")

    def _key(self, question: SuffixChoice, length: int) -> str:
        card = self.model.card
        context = question.example.context
        return digest_of(card.name, card.identity, self.prefixes, length, context, question.suffixes)

    def _scores(self, asked: tuple[SuffixChoice, int]) -> list[list[float]]:
        """Return a row of scores for each prefix."""
        question, length = asked
        card, texts = self.model.card, question.suffixes
        found = self.model.score_suffixes(
            question.example.context, texts, prefix_tokens=self.prefixes, suffix_tokens=length
        )
        for value, text in ((value, text) for row in found for value, text in zip(row, texts, strict=True)):
            if not math.isfinite(value):
                dtype = card.identity.get("dtype")
                raise not_finite(value, model=card.name, dtype=dtype, what=beginning(text))
        return found
