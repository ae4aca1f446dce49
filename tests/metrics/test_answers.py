"""Answers as text and in groups, against naive counting."""

from __future__ import annotations

import string
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from ensue.metrics.answers import (
    best_over,
    equal_pairs,
    exact_groups,
    exact_match,
    normalised,
    token_f1,
    whole_groups_right,
)
from ensue.metrics.classification import confusion, f1

WORDS = st.lists(st.sampled_from(["The", "old", "mill", "Mill,", "a", "on", "an", "river-bank"]), max_size=8)


@settings(max_examples=200, deadline=None)
@given(WORDS, WORDS)
def test_token_f1_by_crossing_off_words(first: list[str], second: list[str]) -> None:
    def plain(words: list[str]) -> list[str]:
        bare = ["".join(c for c in word.lower() if c not in string.punctuation) for word in words]
        return [word for word in bare if word not in ("a", "an", "the")]

    left, shared = plain(second), 0
    for word in plain(first):
        if word in left:
            left.remove(word)
            shared += 1
    expected = 0.0
    if shared:
        precision, recall = shared / len(plain(first)), shared / len(plain(second))
        expected = 2 * precision * recall / (precision + recall)
    assert token_f1(" ".join(first), " ".join(second)) == pytest.approx(expected)
    assert exact_match(" ".join(first), " ".join(second)) == float(plain(first) == plain(second))


def test_normalising_takes_whole_articles_only() -> None:
    assert normalised("An Anthem, the\tthird!") == "anthem third"
    assert normalised("U.S.A.") == "usa"
    assert normalised("O’Neil") == "o’neil"


def test_answers_without_words_match_exactly_but_share_nothing() -> None:
    assert exact_match("The", "a") == 1.0
    assert token_f1("The", "a") == 0.0


def test_the_best_reference_counts() -> None:
    references = ["the harbour of Malmen", "Malmen"]
    assert best_over(token_f1, "Malmen harbour", references) == pytest.approx(0.8)
    assert best_over(exact_match, "Malmen", references) == 1.0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_multirc_measures_by_loops(answers: list[tuple[int, bool, bool]]) -> None:
    questions = {question for question, _, _ in answers}
    whole = [all(g == p for q, g, p in answers if q == question) for question in questions]
    names = [question for question, _, _ in answers]
    assert exact_groups(names, [g == p for _, g, p in answers]) == pytest.approx(sum(whole) / len(whole))
    gold, predicted = [g for _, g, _ in answers], [p for _, _, p in answers]
    assert f1(confusion(gold, predicted, 2)) == pytest.approx(f1_score(gold, predicted, zero_division=0))


def test_parity_counts_whole_pairs_and_not_whether_they_are_right() -> None:
    pairs = ["p", "q", "p", "q", "r", "s", "s"]
    equal = equal_pairs(pairs, ["yes", "no", "yes", "yes", "no", "no", "no"])
    assert equal == {"p": True, "q": False, "s": True}
    with pytest.raises(ValueError, match="3 members"):
        equal_pairs(["p"] * 3, ["yes"] * 3)


@pytest.mark.parametrize("function", [whole_groups_right, exact_groups, equal_pairs])
def test_lists_that_do_not_belong_together_are_refused(function: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match="zip"):
        function(["p", "p"], [True])
    with pytest.raises(ValueError, match="zip"):
        function(["p"], [True, True])


def test_groups_come_in_order_of_appearance_and_one_wrong_answer_spoils_one() -> None:
    found = whole_groups_right(["b", "a", "b", "c", "a"], [True, True, False, True, True])
    assert list(found.items()) == [("b", False), ("a", True), ("c", True)]
    assert list(equal_pairs(["b", "a", "a", "b"], [0, 1, 1, 1]).items()) == [("b", False), ("a", True)]
