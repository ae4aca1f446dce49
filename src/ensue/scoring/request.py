"""What is asked of a scorer, how it is to be treated, and what comes back."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Window = Literal["average", "strided", "released", "refuse"]
Overflow = Literal["refuse", "truncate"]
Bos = Literal["auto", "always", "never"]
MaskedVariant = Literal["original", "within-word"]


@dataclass(frozen=True, slots=True)
class Request:
    """Score `continuation` after `context`; `detail` asks for every token's log-probability too."""

    continuation: str
    context: str = ""
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Every choice that changes a score and is not the model's own.

    `window` says what happens to a text longer than the model: `average` (windows with 50 % overlap, their
    log-likelihoods averaged, as Laban et al. write), `strided` (every token scored once, with at least
    half a window of context), `released` (the window arithmetic of the authors' released code) or `refuse`.
    `overflow` says what happens to a context that does not fit before its continuation.
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
    """A text a remote scorer tokenises itself; the characters from `start` on are scored."""

    text: str
    start: int

    @property
    def key(self) -> bytes:
        return self.start.to_bytes(4, "little") + self.text.encode("utf-8", "surrogatepass")

    @property
    def size(self) -> int:
        return 1 + len(self.text) // 4


class PartScore(NamedTuple):
    """The log-probabilities of a part's scored tokens, and where each lies in the continuation, if known."""

    logprobs: npt.NDArray[np.float64]
    spans: tuple[tuple[int, int], ...] | None = None


class Weights(NamedTuple):
    """How a part enters its request: total += total_weight * sum, count += count_weight * tokens.

    `mean_weight` is its share in the per-token score (None: total divided by count).
    """

    total: float = 1.0
    count: float = 1.0
    mean: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A request made ready: its parts, how they add up, and what was done to it on the way."""

    parts: tuple[Part, ...]
    weights: tuple[Weights, ...]
    spans: tuple[tuple[int, int], ...] | None = None
    notes: Counter[str] = field(default_factory=Counter)

    def digest(self, identity: bytes) -> str:
        """The journal key: the model and policy identity, the parts, and how they are put together."""
        h = hashlib.sha256(identity)
        for part, weight in zip(self.parts, self.weights, strict=True):
            key = part.key
            h.update(len(key).to_bytes(8, "little"))
            h.update(key)
            h.update(repr(tuple(weight)).encode())
        return h.hexdigest()


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
