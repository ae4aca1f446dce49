"""Summaries of a document's own sentences: the oracle against naive and exhaustive search, budgets never passed."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ensue.benchmarks.summaries.extractive import Choice, count_words, lead, oracle
from ensue.metrics.overlap import stemmed_words

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


def naive_greedy(sentences: list[str], reference: str) -> Choice:
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
    return Choice(tuple(sorted(chosen)), best)


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
    assert oracle([], ["The ferry ran."]) == Choice((), 0.0)
    assert oracle(["It rained."], ["The ferry ran."]) == Choice((), 0.0)
    assert oracle(["It rained."], [""]) == Choice((), 0.0)


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
