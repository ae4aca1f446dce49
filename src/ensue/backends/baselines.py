"""Baselines that need no weights: chance, and words without order."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache

import numpy as np

from ensue.errors import EnsueError
from ensue.models.card import ModelCard
from ensue.models.request import Part, PartScore, Policy, Prepared, Request, TextPart

_WORD = re.compile(r"\w+|[^\w\s]")


class _WordScorer:
    """Scores words one by one; a subclass says what each is worth."""

    card: ModelCard

    def check(self, policy: Policy) -> None:
        if policy.max_length is not None:
            raise EnsueError(f"{self.card.name} has no length limit, so max_length means nothing to it.")

    def prepare(self, requests: Sequence[Request], policy: Policy) -> list[Prepared]:
        return [_prepare(request) for request in requests]

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        yield [
            (i, self._score(part))
            for i, part in enumerate(parts)
            if i not in done and isinstance(part, TextPart)
        ]

    def policy_signature(self, policy: Policy) -> str:
        return "bos:none first:scored boundary:words window:none"

    def _score(self, part: TextPart) -> PartScore:
        words = [
            m for m in _WORD.finditer(part.text, part.start if part.apart else 0) if m.end() > part.start
        ]
        values = self._values(part, [m.group() for m in words])
        spans = tuple((max(m.start() - part.start, 0), m.end() - part.start) for m in words)
        return PartScore(np.asarray(values, dtype=np.float64), spans)

    def _values(self, part: TextPart, words: Sequence[str]) -> list[float]:
        raise NotImplementedError  # each baseline says what a word is worth


@lru_cache(maxsize=64)
def _word_starts(text: str) -> tuple[int, ...]:
    """Return where each word begins; a context is asked about once for every suffix and length."""
    return tuple(match.start() for match in _WORD.finditer(text))


def _prepare(request: Request) -> Prepared:
    """Turn a request into one text; a cut counts words."""
    context, continuation = request.context, request.continuation
    if request.cut is None:
        return Prepared((TextPart(context + continuation, len(context)),))
    last, first = request.cut
    starts = _word_starts(context)
    kept = starts[max(len(starts) - last, 0) :]
    context = context[kept[0] :] if kept else ""
    after = list(itertools.islice(_WORD.finditer(continuation), first))
    continuation = continuation[: after[-1].end()] if after else ""
    part = TextPart(context + continuation, len(context), apart=True)
    return Prepared((part,), context_tokens=len(kept))


class RandomModel(_WordScorer):
    """A different, reproducible score for every text: accuracy at chance."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.card = ModelCard(
            name="random", kind="baseline", source="ensue", identity={"seed": str(seed)}, licence="Apache-2.0"
        )

    def _values(self, part: TextPart, words: Sequence[str]) -> list[float]:
        digest = hashlib.sha256(self.seed.to_bytes(8, "little") + part.key).digest()
        generator = np.random.default_rng(int.from_bytes(digest[:8], "little"))
        return [-float(x) for x in generator.exponential(8.0, size=len(words))]


class UnigramModel(_WordScorer):
    """Word frequencies of some texts, with letters to fall back on: blind to order by construction."""

    def __init__(self, texts: Iterable[str], source: str) -> None:
        words = Counter(word.lower() for text in texts for word in _WORD.findall(text))
        letters = Counter(letter for word, count in words.items() for letter in word for _ in range(count))
        self._total = sum(words.values()) + len(words) + 1
        self._words = {word: math.log((count + 0.5) / self._total) for word, count in words.items()}
        # Half a count of each known word is kept back for the unknown, spelled letter by letter.
        self._unknown = math.log((len(words) + 2) / 2 / self._total)
        size = sum(letters.values()) + 2 * len(letters) + 2
        self._letters = {letter: math.log((count + 1) / size) for letter, count in letters.items()}
        self._unknown_letter = math.log(1 / size)
        digest = hashlib.sha256(repr(sorted(words.items())).encode()).hexdigest()
        self.card = ModelCard(
            name="unigram", kind="baseline", source=source, identity={"counts": digest}, licence="Apache-2.0"
        )

    def _values(self, part: TextPart, words: Sequence[str]) -> list[float]:
        return [self._word(word.lower()) for word in words]

    def _word(self, word: str) -> float:
        if word in self._words:
            return self._words[word]
        return self._unknown + math.fsum(self._letters.get(letter, self._unknown_letter) for letter in word)


def load_unigram(source: str = "") -> UnigramModel:
    """Count the words of a file's texts, or of the bundled ones where none is named."""
    from ensue.text.documents import read_documents

    source = source or "bundled"
    return UnigramModel((" ".join(document.sentences) for document in read_documents(source).items), source)
