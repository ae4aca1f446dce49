"""A model that rates texts whose sentences end with their numbers: the fewer stand before a smaller, the better."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from ensue.models.card import ModelCard


class InversionRater:
    """Rates a text by minus the number of inversions among the first `sees` sentences; counts what it was asked.

    It stops with an error when it has rated `most` texts, as a run that is killed.
    """

    def __init__(self, sees: int | None = None, most: int | None = None, *, shuffled: bool = False) -> None:
        self.sees, self.most, self.rated = sees, most, 0
        name = f"inversions-{sees or 'all'}"
        self.card = ModelCard(
            name, "rater", "tests", {"weights": name.ljust(16, "-")}, trained_on_shuffled_text=shuffled
        )

    def rate(self, texts: Sequence[Sequence[str]]) -> list[float]:
        found = []
        for text in texts:
            self.rated += 1
            if self.most is not None and self.rated > self.most:
                raise KeyboardInterrupt
            found.append(-float(inversions(text, self.sees)))
        return found


def inversions(text: Sequence[str], sees: int | None = None) -> int:
    numbers = [int(re.findall(r"\d+", sentence)[-1]) for sentence in text][:sees]
    return sum(a > b for a, b in combinations(numbers, 2))
