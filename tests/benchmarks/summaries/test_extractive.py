"""Summaries of a document's own sentences: the oracle against naive and exhaustive search, nearness as numpy has it,
budgets never passed, each text encoded once."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ensue.benchmarks.summaries.extractive import (
    Retriever,
    SentenceChoice,
    count_words,
    fill,
    lead,
    nearest_text,
    oracle,
)
from ensue.metrics.overlap import stemmed_words
from ensue.models.card import ModelCard

WORDS = some.sampled_from(["mill", "mills", "river", "stood", "still", "by", "the", "ferry", "fog"])
SENTENCE = some.lists(WORDS, min_size=1, max_size=6).map(" ".join)
STORY = some.lists(SENTENCE, min_size=1, max_size=7)


def objective(sentences: list[str], reference: str) -> float:
    """The mean of ROUGE-1 and ROUGE-2, n-grams counted within sentences, written out."""

    def counts(text: str, n: int) -> Counter[tuple[str, ...]]:
        words = stemmed_words(text)
        return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))

    scores = []
    for n in (1, 2):
        wanted = counts(reference, n)
        have = sum((counts(sentence, n) for sentence in sentences), Counter[tuple[str, ...]]())
        shared, given_, size = sum((wanted & have).values()), sum(have.values()), sum(wanted.values())
        precision, recall = shared / given_ if given_ else 0.0, shared / size if size else 0.0
        scores.append(2 * precision * recall / (precision + recall) if shared else 0.0)
    return sum(scores) / 2


def naive_greedy(sentences: list[str], reference: str) -> SentenceChoice:
    chosen: list[int] = []
    best = 0.0
    while len(chosen) < len(sentences):
        tried = {
            place: objective([sentences[i] for i in [*chosen, place]], reference)
            for place in range(len(sentences))
            if place not in chosen
        }
        place = max(tried, key=lambda one: (round(tried[one], 12), -one))
        if tried[place] <= best + 1e-12:
            break
        best = tried[place]
        chosen.append(place)
    return SentenceChoice(tuple(sorted(chosen)), best)


@settings(deadline=None)
@given(STORY, some.lists(SENTENCE, min_size=1, max_size=3))
def test_the_oracle_is_a_naive_greedy_search_by_rouge(story: list[str], references: list[str]) -> None:
    found = oracle(story, references)
    each = [naive_greedy(story, reference) for reference in references]
    assert found.score == pytest.approx(max(one.score for one in each))
    chosen = [story[place] for place in found.places]
    assert found.score == pytest.approx(max(objective(chosen, one) for one in references))


@settings(deadline=None, max_examples=50)
@given(STORY, SENTENCE)
def test_no_choice_of_sentences_is_worse_than_one_and_none_beats_all_subsets(
    story: list[str], reference: str
) -> None:
    found = oracle(story, [reference])
    subsets = (
        objective(list(some_), reference)
        for size in range(len(story) + 1)
        for some_ in itertools.combinations(story, size)
    )
    single = max(objective([sentence], reference) for sentence in story)
    assert single - 1e-9 <= found.score <= max(subsets) + 1e-9


def test_a_reference_made_of_sentences_is_found_whole() -> None:
    story = ["Fog lay on the river.", "Ilse carried two pails.", "A ferry whistled far off.", "She waited."]
    found = oracle(story, ["Nothing in common here", "Ilse carried two pails. She waited."])
    # The bigram across the two sentences is all that is missing.
    assert found.places == (1, 3)
    assert found.score == pytest.approx((1.0 + 2 * 4 / (4 + 5)) / 2)


def test_nothing_is_chosen_of_nothing_or_for_nothing() -> None:
    assert oracle([], ["The ferry ran."]) == SentenceChoice((), 0.0)
    assert oracle(["It rained."], ["The ferry ran."]) == SentenceChoice((), 0.0)
    assert oracle(["It rained."], [""]) == SentenceChoice((), 0.0)


@given(STORY, some.integers(1, 30))
def test_the_lead_is_whole_sentences_from_the_start_within_its_words(story: list[str], words: int) -> None:
    found = lead(story, words)
    assert 0 < count_words(found) <= words
    taken = next((n for n in range(len(story), 0, -1) if " ".join(story[:n]) == found), 0)
    if taken:
        assert taken == len(story) or count_words(" ".join(story[: taken + 1])) > words
    else:
        assert count_words(story[0]) > words
        assert story[0].startswith(found)


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
