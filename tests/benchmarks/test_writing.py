"""Texts that models write: portions are cut of all prompts, and what is known or comes anyway is not asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ensue.benchmarks.writing import write_texts
from ensue.models.card import ModelCard
from ensue.records import Records, plain

TEXTS = plain("texts")


class Counting:
    """Writes how many portions it was given, with each prompt."""

    card = ModelCard(name="counting", kind="test", source="test", identity={})

    def __init__(self) -> None:
        self.given: list[list[str]] = []

    def generate(self, prompts: Sequence[str], **options: Any) -> list[str]:
        self.given.append(list(prompts))
        return [f"{prompt} {len(self.given)}" for prompt in prompts]


class Handy(Counting):
    """The same with several hands, which one at a time is enough for here."""

    at_once = 1


@pytest.mark.parametrize("kind", [Counting, Handy])
def test_a_portion_whose_texts_are_known_or_come_with_another_is_not_written(kind: type[Counting]) -> None:
    model, records = kind(), Records()
    records.add(TEXTS, [("e", "known"), ("f", "known")])
    keys = ["a", "b", "b", "a", "c", "a", "e", "f", "e", "g"]
    reported: list[tuple[int, int, str]] = []
    found = write_texts(
        model, keys, keys, records, TEXTS, portion=2, progress=lambda *said: reported.append(said)
    )
    assert model.given == [["a", "b"], ["c", "a"], ["e", "g"]]
    # Of two texts under one key the last is kept, and all that ask for it have it.
    assert found == ["a 2", "b 1", "b 1", "a 2", "c 2", "a 2", "e 3", "known", "e 3", "g 3"]
    assert reported == [(done, 10, "texts") for done in (2, 4, 6, 8, 10)]
