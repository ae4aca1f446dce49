"""Models that do harm, for workers to load."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence, Set

from ensue.backends.baselines import RandomModel
from ensue.models.protocols import Model
from ensue.models.request import Part, PartScore


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


class Varying(RandomModel):
    """Has other weights in every process."""

    def __init__(self) -> None:
        super().__init__(os.getpid())


def load_varying() -> Model:
    return Varying()


def wait(seconds: float) -> int:
    import time

    time.sleep(seconds)
    return os.getpid()
