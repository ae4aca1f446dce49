"""Small parts that ask, answer and encode by rule, so that the same texts always have the same questions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ensue.benchmarks.qags.candidates import AnswerCandidate, distinct
from ensue.benchmarks.qags.pipeline import Pair
from ensue.models.card import ModelCard
from ensue.models.protocols import AnswerSpan, Asked, FoundAnswer

NAME = re.compile(r"\b[A-Z][a-z]{3,}\b")
BEFORE = re.compile(r"(\w+) (\w+)\W*$")
ASKED = re.compile(r"after (\w+) (\w+)\?")


class NameFinder:
    """Every word with a capital is a candidate."""

    identity = "names"

    def __init__(self) -> None:
        self.read: list[str] = []

    def candidates(self, texts: Iterable[str]) -> Iterator[list[AnswerCandidate]]:
        for text in texts:
            self.read.append(text)
            yield distinct(
                AnswerCandidate(one.group(), one.start(), one.end(), "entity", "NAME")
                for one in NAME.finditer(text)
            )


class WordsBefore:
    """Asks for the name that stands after two words; among its questions are bad ones of every kind."""

    def __init__(self, name: str = "words-before") -> None:
        self.card = ModelCard(name=name, kind="questions", source="test", identity={"weights": name})
        self.asked: list[tuple[str, AnswerSpan]] = []

    def ask(
        self, contexts: Sequence[str], answers: Sequence[AnswerSpan], *, count: int = 10, **search: Any
    ) -> list[list[Asked]]:
        self.asked += zip(contexts, answers, strict=True)
        return [self._questions(*one)[:count] for one in zip(contexts, answers, strict=True)]

    def _questions(self, context: str, span: AnswerSpan) -> list[Asked]:
        found = BEFORE.search(context[: span.start])
        first, second = found.groups() if found else ("the", "start")
        size = (span.end - span.start) / 100.0
        return [
            Asked(f"Which name comes after {first} {second}? And which before?", -0.5 - size),
            Asked(f"What is the name that comes after {first} {second}?", -0.7 - size),
            Asked(f"Which name comes after {first} {second}?", -0.8 - size),
            Asked(f"Say which name is after {first} {second}", -0.9 - size),
            Asked("Who ?", -1.0 - size),
            Asked(f"Who was seen in {context[span.start : span.end]} that day?", -1.1 - size),
            Asked("Is there a name after nothing at all?", float("nan")),
        ]


class NameAfter:
    """Finds the two words a question names and gives the next word with a capital; else there is no answer."""

    def __init__(self, name: str = "name-after") -> None:
        self.card = ModelCard(name=name, kind="answers", source="test", identity={"weights": name})
        self.answered: list[tuple[str, str]] = []
        self.stop_after: int | None = None

    def answer(self, questions: Sequence[str], contexts: Sequence[str]) -> list[FoundAnswer]:
        if self.stop_after is not None and len(self.answered) >= self.stop_after:
            raise KeyboardInterrupt
        self.answered += zip(questions, contexts, strict=True)
        return [self._answer(*one) for one in zip(questions, contexts, strict=True)]

    def _answer(self, question: str, context: str) -> FoundAnswer:
        asked = ASKED.search(question)
        place = re.search(rf"\b{asked.group(1)} {asked.group(2)}\b", context) if asked else None
        found = NAME.search(context, place.end()) if place else None
        return (
            FoundAnswer(found.group(), found.start(), found.end(), 1.0)
            if found
            else FoundAnswer("", 0, 0, -1.0)
        )


class Letters:
    """The counts of letters as a vector."""

    card = ModelCard(name="letters", kind="encoder", source="test", identity={"weights": "letters"})

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> np.ndarray:
        self.encoded += texts
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.lower().count(c) for c in letters] for text in texts], dtype=np.float32)


SOURCE = (
    "The old ferry was steered by Ruth Olsen when it left for Ellery. On the quay stood the harbour master, whose "
    "name was Tobias. He had sent a letter to Marlow, where his sister kept an inn with Agnes."
)
OTHER = "A letter went to Brandt. Nobody was steered by Hanna, and the goods that left for Lund were lost."
FAITHFUL = (
    "The ferry steered by Ruth left for Ellery. Its master, whose name was Tobias, sent a letter to Marlow."
)
WRONG = (
    "The ferry steered by Hanna left for Lund. Its master, whose name was Tobias, sent a letter to Brandt."
)
NAMELESS = "nothing here has a name."
PAIRS = [
    Pair(SOURCE, FAITHFUL),
    Pair(SOURCE, WRONG),
    Pair(OTHER, FAITHFUL),
    Pair(OTHER, WRONG),
    Pair(SOURCE, NAMELESS),
    Pair(SOURCE, "  "),
    Pair(SOURCE, FAITHFUL),
]
