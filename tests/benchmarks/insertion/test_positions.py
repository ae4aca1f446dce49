"""The values of positions against whole texts scored one by one, and how the best of them is judged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ensue.backends.names import load_model
from ensue.benchmarks.coherence.neighbours import Neighbours
from ensue.benchmarks.insertion.positions import Removed, judge, requests_of, values_between, values_of
from ensue.models.protocols import Scorer, require
from ensue.models.request import Policy
from ensue.scoring.engine import score
from ensue.text.documents import Document
from tests.support import tiny
from tests.support.corpus import document
from tests.support.naive_texts import NaiveCausal

TEXT = Document("d", tuple(document(4, 5)), "news")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_llama(tmp_path_factory.mktemp("llama"), max_length=512)


@pytest.fixture(scope="module")
def naive(folder):
    return NaiveCausal(folder)


def values(folder, removed, after):
    requests = requests_of(removed, " ", after)
    scorer = require(load_model(str(folder)), Scorer, "A test")
    scored = score(scorer, requests, policy=Policy(window="strided", overflow="truncate"))
    return values_of(removed, iter([one.logprob for one in scored.scores]), after)


def text_at(removed, position):
    rest = list(removed.rest)
    rest.insert(position, removed.sentence)
    return " ".join(rest)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_the_whole_text_at_each_position_is_scored(folder, naive, place):
    removed = Removed(TEXT, place)
    expected = [naive.total(text_at(removed, at)) for at in range(5)]
    assert values(folder, removed, None) == pytest.approx(expected, abs=1e-3)
    # With and without the sentence, to the end of the text, differs by the text without it, wherever it stands.
    without = naive.total(" ".join(removed.rest))
    assert values(folder, removed, 4) == pytest.approx([one - without for one in expected], abs=1e-3)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_so_many_sentences_after_it_are_scored_with_and_without(folder, naive, after):
    removed = Removed(TEXT, 1)
    rest = removed.rest
    for at, value in enumerate(values(folder, removed, after)):
        before, tail = " ".join(rest[:at]), list(rest[at : at + after])
        space = " " if at else ""
        expected = naive.after(space + " ".join([removed.sentence, *tail]), before)
        if tail:
            expected -= naive.after(space + " ".join(tail), before)
        assert value == pytest.approx(expected, abs=1e-3)


def test_what_stands_before_a_position_begins_what_stands_before_the_next():
    """So that the engine reads a document's beginnings once."""
    contexts = [request.context for request in requests_of(Removed(TEXT, 3), " ", 2)]
    for one, other in itertools.pairwise(contexts):
        assert other.startswith(one)
    # A position with and without the sentence; nothing follows the last.
    assert len(contexts) == 2 * 5 - 1


def test_values_between_neighbours():
    follows = np.arange(16.0).reshape(4, 4)
    found = Neighbours(follows, np.asarray([100.0, 200.0, 300.0, 400.0]))
    # Sentence 1 among 0, 2 and 3: what it adds to the sum over the chain and its opening.
    chain = {at: [*[0, 2, 3][:at], 1, *[0, 2, 3][at:]] for at in range(4)}
    without = 100.0 + follows[0, 2] + follows[2, 3]
    expected = [
        found.opens[order[0]] + sum(follows[a, b] for a, b in itertools.pairwise(order)) - without
        for order in chain.values()
    ]
    assert values_between(Removed(Document("d", tuple("abcd"), ""), 1), found) == pytest.approx(expected)


def test_positions_that_give_the_document_back():
    assert Removed(Document("d", ("a", "b", "c"), ""), 1).right() == [1]
    assert Removed(Document("d", ("a", "b", "b", "c"), ""), 2).right() == [1, 2]
    assert Removed(Document("d", ("a", "a"), ""), 0).right() == [0, 1]


def test_the_best_position_is_judged_and_equal_ones_share():
    assert judge([0.0, 3.0, 1.0], [1]) == ([1], 1.0, 0.0)
    assert judge([5.0, 3.0, 1.0], [2]) == ([0], 0.0, 2.0)
    # Next to one of two that are right.
    assert judge([0.0, 0.0, 0.0, 9.0], [0, 2])[1:] == (0.0, 1.0)
    # Nothing to choose: chance.
    assert judge([1.0] * 4, [0]) == ([0, 1, 2, 3], 0.25, 1.5)
    # A tie is what the Shuffle Test calls one.
    assert judge([1.0, 1.00005, 0.999], [0])[0] == [0, 1]
