"""Models for workers to load that need no weights: slow ones, and ones that do harm."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Sequence, Set

from ensue.backends.baselines import RandomModel
from ensue.models.card import ModelCard
from ensue.models.protocols import Model
from ensue.models.request import Part, PartScore, TextPart
from ensue.scoring.shares import Piece


class Slow(RandomModel):
    """Scores at chance, a text at a time, each in a share of its own that takes a moment."""

    def divide(self, parts: Sequence[Part], done: Set[int]) -> Iterator[tuple[int, Part]]:
        yield from ((place, part) for place, part in enumerate(parts) if place not in done)

    def work(self, share: tuple[int, TextPart]) -> Iterator[list[Piece]]:
        place, part = share
        time.sleep(0.02)
        yield [Piece(place, self._score(part))]


def load_slow() -> Model:
    return Slow()


class Harmful(RandomModel):
    """Scores at chance, unless it is asked to score a word that ends it."""

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        for part in parts:
            if "kill" in part.text:  # type: ignore[attr-defined]
                os.kill(os.getpid(), signal.SIGKILL)
            if "memory" in part.text:  # type: ignore[attr-defined]
                bytearray(2**60)
        yield from super().execute(parts, done)


def load_harmful() -> Model:
    return Harmful()


class Greedy(RandomModel):
    """Takes ever more memory over some texts, up to 8 GiB."""

    def execute(self, parts: Sequence[Part], done: Set[int]) -> Iterator[list[tuple[int, PartScore]]]:
        if any("all of it" in part.text for part in parts):  # type: ignore[attr-defined]
            held = []
            for _ in range(128):
                held.append(b"x" * 2**26)
                time.sleep(0.05)
        yield from super().execute(parts, done)


def load_greedy() -> Model:
    return Greedy()


class Varying(RandomModel):
    """Has other weights in every process."""

    def __init__(self) -> None:
        super().__init__(os.getpid())


def load_varying() -> Model:
    return Varying()


class Suffixes:
    """Ranks suffixes by their length after a context's, and takes a moment for it."""

    card = ModelCard(name="suffixes", kind="suffixlm", source="test", identity={"weights": "none"})
    max_prefix_tokens = 1024

    def score_suffixes(
        self, context: str, suffixes: Sequence[str], *, prefix_tokens: Sequence[int], suffix_tokens: int
    ) -> list[list[float]]:
        time.sleep(0.05)
        return [
            [(len(context) + len(suffix) * tokens) / suffix_tokens for suffix in suffixes]
            for tokens in prefix_tokens
        ]


def load_suffixes() -> Suffixes:
    return Suffixes()


def wait(seconds: float) -> int:
    """Return which process waited."""
    time.sleep(seconds)
    return os.getpid()
