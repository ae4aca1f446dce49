"""What is asked of a scorer, how it is to be treated, and what comes back."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Window = Literal["average", "strided", "released", "refuse"]
Overflow = Literal["refuse", "truncate"]
Bos = Literal["auto", "always", "never"]
MaskedVariant = Literal["original", "within-word", "released"]


class TokenCut(NamedTuple):
    """Keep the last so many tokens of a context and the first so many of its continuation."""

    context_tokens: int
    continuation_tokens: int


@dataclass(frozen=True, slots=True)
class Request:
    """Score `continuation` after `context`; `detail` asks for every token's log-probability too.

    With a `cut` the two are tokenised apart and cut in tokens; without one they are tokenised jointly.
    """

    continuation: str
    context: str = ""
    detail: bool = False
    cut: TokenCut | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Every choice that changes a score and is not the model's own.

    `window` says what happens to a text longer than the model: `average` (windows with 50 % overlap, their
    log-likelihoods averaged, as Laban et al. write), `strided` (every token scored once, with at least
    half a window of context), `released` (the window arithmetic of the authors' released code) or `refuse`.
    `overflow` says what happens to a context that does not fit before its continuation. `masked` is the variant of a
    masked model's score; `released` is the authors' code, windows and all.
    """

    window: Window = "average"
    overflow: Overflow = "refuse"
    bos: Bos = "auto"
    max_length: int | None = None
    masked: MaskedVariant = "original"


class Part(Protocol):
    """One piece of work a scorer does in one go; `key` is everything about it that changes its score."""

    @property
    def key(self) -> bytes: ...
    @property
    def size(self) -> int: ...


@dataclass(frozen=True, slots=True, eq=False)
class TokenPart:
    """A token sequence of which the tokens from `start` on are scored."""

    ids: npt.NDArray[np.int32]
    start: int

    @property
    def key(self) -> bytes:
        return self.start.to_bytes(4, "little") + self.ids.tobytes()

    @property
    def size(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class MaskedPart:
    """A token sequence of which each group of `targets` is masked in turn.

    For target i, the positions `hidden[i]` are masked together and only `targets[i]` is scored.
    """

    ids: npt.NDArray[np.int32]
    targets: tuple[int, ...]
    hidden: tuple[tuple[int, ...], ...]

    @property
    def key(self) -> bytes:
        masks = ";".join(",".join(map(str, h)) for h in self.hidden)
        return f"{self.targets}|{masks}|".encode() + self.ids.tobytes()

    @property
    def size(self) -> int:
        return len(self.ids) * len(self.targets)


@dataclass(frozen=True, slots=True, eq=False)
class TextPart:
    """A text its scorer divides itself; the characters from `start` on are scored.

    `apart` says that no word or token may reach across `start`.
    """

    text: str
    start: int
    apart: bool = False

    @property
    def key(self) -> bytes:
        key = self.start.to_bytes(4, "little") + self.text.encode("utf-8", "surrogatepass")
        return b"apart" + key if self.apart else key

    @property
    def size(self) -> int:
        return 1 + len(self.text) // 4


class PartScore(NamedTuple):
    """The log-probabilities of a part's scored tokens, and where each lies in the continuation, if known."""

    logprobs: npt.NDArray[np.float64]
    spans: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class Mix:
    """How the parts of a request make one score.

    `sum`: totals add up. `average`: total and per-token score are means over the parts. `means`: the
    per-token score is the `shares`-weighted mean of the parts' means, the total that times the tokens.
    """

    rule: Literal["sum", "average", "means"] = "sum"
    shares: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A request made ready: its parts, how they mix, and what was done to it on the way.

    `tokens` is the number of the request's tokens that are scored (None: as many as the parts return);
    `spans` are their character offsets in the continuation, where each token is scored once.
    `context_tokens` is how much context a cut request was left with.
    """

    parts: tuple[Part, ...]
    mix: Mix = Mix()
    tokens: int | None = None
    spans: tuple[tuple[int, int], ...] | None = None
    notes: Counter[str] = field(default_factory=Counter)
    context_tokens: int | None = None

    def digest(self, identity: bytes) -> str:
        """Return the journal key: the model and policy identity, the parts, and how they are put together."""
        h = hashlib.sha256(identity)
        h.update(f"{self.mix.rule}{self.mix.shares}{self.tokens}".encode())
        for part in self.parts:
            key = part.key
            h.update(len(key).to_bytes(8, "little"))
            h.update(key)
        return h.hexdigest()

    def combine(self, scores: Sequence[PartScore], detail: bool) -> Score:
        """Combine the scores of the parts to the request's."""
        # fsum is exact: the order in which tokens come does not move the total.
        sums = [math.fsum(score.logprobs) for score in scores]
        counts = [len(score.logprobs) for score in scores]
        means = [total / count if count else 0.0 for total, count in zip(sums, counts, strict=True)]
        tokens = sum(counts) if self.tokens is None else self.tokens
        if self.mix.rule == "sum":
            logprob = math.fsum(sums)
            mean = logprob / tokens if tokens else 0.0
        elif self.mix.rule == "average":
            logprob, mean = math.fsum(sums) / len(sums), math.fsum(means) / len(means)
        else:
            mean = math.fsum(share * m for share, m in zip(self.mix.shares, means, strict=True))
            logprob = mean * tokens
        if not detail or sum(counts) != tokens:
            return Score(logprob, tokens, mean)
        logprobs = tuple(float(x) for score in scores for x in score.logprobs)
        spans = self.spans if self.spans is not None else (scores[0].spans if len(scores) == 1 else None)
        return Score(logprob, tokens, mean, logprobs, spans)


class Score(NamedTuple):
    """The log-likelihood of one request, in nats.

    `tokens` counts the scored tokens. `token_logprobs` and `token_spans` (character offsets in the
    continuation) are there when the request asked for detail and each token was scored once.
    """

    logprob: float
    tokens: int
    logprob_per_token: float
    token_logprobs: tuple[float, ...] | None = None
    token_spans: tuple[tuple[int, int], ...] | None = None
