"""Retrieval: nearness as numpy has it, the story's order, the budget, each text encoded once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as some

from ensue.benchmarks.summaries.extractive import count_words
from ensue.benchmarks.summaries.retrieval import Retriever, fill, nearest_text
from ensue.models.card import ModelCard


class LetterEncoder:
    """Vectors that count letters; remembers what it was asked."""

    card = ModelCard(name="letters", kind="encoder", source="test")

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(
        self, texts: Sequence[str], *, layers: Sequence[int] | None = None, pooling: str | None = None
    ) -> npt.NDArray[np.float32]:
        self.asked += texts
        letters = "abcdefghijklmnopqrstuvwxyz"
        return np.array([[text.lower().count(one) for one in letters] for text in texts], dtype=np.float32)


SENTENCES = ["The ferry waits.", "Ilse has a fish.", "Fog on the river.", "12!", "A fish, two fish."]


def test_the_nearest_come_first_by_cosine() -> None:
    encoder = LetterEncoder()
    found = Retriever(encoder).nearest("Which fish?", SENTENCES)
    vectors = LetterEncoder().encode(["Which fish?", *SENTENCES]).astype(float)
    norms = np.linalg.norm(vectors, axis=1)
    cosines = [
        0.0 if not norms[n] else float(vectors[0] @ vectors[n] / norms[0] / norms[n])
        for n in range(1, len(vectors))
    ]
    assert found == sorted(range(len(SENTENCES)), key=lambda place: -cosines[place])
    assert found[0] in (1, 4)
    assert found[-1] == 3


def test_every_text_is_encoded_once() -> None:
    encoder = LetterEncoder()
    retriever = Retriever(encoder)
    for question in ("Which fish?", "Where?", "Which fish?"):
        retriever.nearest(question, SENTENCES)
    assert sorted(encoder.asked) == sorted({*SENTENCES, "Which fish?", "Where?"})
    assert retriever.nearest("Where?", []) == []


@given(some.lists(some.integers(1, 9), min_size=1, max_size=12), some.integers(0, 40), some.randoms())
def test_what_is_taken_fits_is_in_order_and_leaves_no_room_for_more(costs, room, draw) -> None:  # type: ignore[no-untyped-def]
    order = list(range(len(costs)))
    draw.shuffle(order)
    taken = fill(order, costs, room)
    assert taken == sorted(set(taken))
    left = room - sum(costs[place] for place in taken)
    assert left >= 0
    # Whatever was passed over did not fit beside the nearer ones that were taken.
    for place in set(order) - set(taken):
        nearer = [one for one in order[: order.index(place)] if one in taken]
        assert costs[place] > room - sum(costs[one] for one in nearer)


@given(
    some.lists(
        some.lists(some.sampled_from(["mill", "fog"]), min_size=1, max_size=5), min_size=1, max_size=6
    ),
    some.integers(1, 20),
    some.randoms(),
)
def test_a_retrieved_text_keeps_to_its_words(rows, words, draw) -> None:  # type: ignore[no-untyped-def]
    sentences = [" ".join([str(n), *row]) for n, row in enumerate(rows)]
    order = list(range(len(sentences)))
    draw.shuffle(order)
    text = nearest_text(order, sentences, words)
    assert 0 < count_words(text) <= words
    numbers = [int(word) for word in text.split() if word.isdigit()]
    assert numbers == sorted(numbers)
