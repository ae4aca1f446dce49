"""Shuffled orders: distinct, never the original, the same for the same seed, as many as there are."""

from __future__ import annotations

import hashlib
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.benchmarks.shuffle.permute import blocks_of, document_seed, sentence_order, shuffled_orders

# Few different sentences, so that repeats are common; some are made of others.
sentences = st.lists(st.sampled_from(["No.", "No. No.", "Yes.", "Perhaps.", "a b", "a", "b"]), max_size=9)
different = st.integers(2, 40).map(lambda count: [f"Sentence {i}." for i in range(count)])
sizes = st.integers(1, 6)
seeds = st.integers(0, 2**64 - 1)


def text(document: list[str], size: int, order: tuple[int, ...], joiner: str = " ") -> str:
    """The shuffled text, made here from the definition: blocks of `size` sentences put in `order`."""
    blocks = [document[begin : begin + size] for begin in range(0, len(document), size)]
    return joiner.join(joiner.join(blocks[i]) for i in order)


def possible_texts(document: list[str], size: int, joiner: str = " ") -> set[str]:
    count = math.ceil(len(document) / size)
    every = {text(document, size, order, joiner) for order in itertools.permutations(range(count))}
    return every - {joiner.join(document)}


@given(sentences | different, sizes, st.integers(1, 30), seeds)
def test_orders_are_permutations_of_the_blocks_never_the_identity_and_never_twice(
    document, size, wanted, seed
):
    orders = shuffled_orders(document, size, wanted, seed)
    count = math.ceil(len(document) / size)
    assert len(orders) <= wanted
    assert len(set(orders)) == len(orders)
    for order in orders:
        assert sorted(order) == list(range(count))
        assert order != tuple(range(count))


@given(sentences, sizes, st.integers(1, 30), seeds, st.sampled_from([" ", "", "\n\n"]))
def test_no_text_is_the_original_and_no_text_comes_twice(document, size, wanted, seed, joiner):
    orders = shuffled_orders(document, size, wanted, seed, joiner)
    texts = [text(document, size, order, joiner) for order in orders]
    assert joiner.join(document) not in texts
    assert len(set(texts)) == len(texts)


@given(st.data(), sizes, st.integers(1, 60), seeds)
@settings(deadline=None)
def test_as_many_as_there_are_come_back_and_no_fewer(data, size, wanted, seed):
    document = data.draw(sentences)
    orders = shuffled_orders(document, size, wanted, seed)
    if math.ceil(len(document) / size) <= 7:
        assert len(orders) == min(wanted, len(possible_texts(document, size)))


@given(different, st.integers(1, 20), seeds)
def test_different_sentences_give_twenty_shuffles_or_every_order_there_is(document, size, seed):
    count = math.ceil(len(document) / size)
    assert len(shuffled_orders(document, size, 20, seed)) == min(20, math.factorial(count) - 1)


@pytest.mark.parametrize("wanted", [40_318, 40_319, 50_000])
def test_nearly_all_orders_of_eight_blocks_can_be_had(wanted):
    document = [f"Sentence {i}." for i in range(8)]
    assert len(shuffled_orders(document, 1, wanted, seed=1)) == min(wanted, 40_319)


def test_one_sentence_out_of_twenty_that_differs_can_stand_in_nineteen_other_places():
    document = ["No."] * 19 + ["Yes."]
    assert len(shuffled_orders(document, 1, 50, seed=0)) == 19


@given(st.integers(1, 9), seeds)
def test_two_blocks_have_one_other_order(size, seed):
    document = [f"Sentence {i}." for i in range(size + 1)]
    assert shuffled_orders(document, size, 20, seed) == [(1, 0)]


@given(sentences, seeds)
def test_one_block_has_none(document, seed):
    assert shuffled_orders(document, max(len(document), 1), 20, seed) == []


@given(different, sizes, seeds)
def test_the_same_seed_gives_the_same_orders_and_a_longer_list_begins_with_the_shorter(document, size, seed):
    orders = shuffled_orders(document, size, 20, seed)
    assert shuffled_orders(document, size, 20, seed) == orders
    assert shuffled_orders(document, size, 7, seed) == orders[:7]


def test_another_seed_gives_other_orders():
    document = [f"Sentence {i}." for i in range(20)]
    found = {tuple(shuffled_orders(document, 1, 20, seed)) for seed in range(50)}
    assert len(found) == 50


def test_orders_are_drawn_evenly():
    """Every other order of three blocks about as often: 500 draws of one, each expected 100 times."""
    document = ["One.", "Two.", "Three."]
    drawn = [shuffled_orders(document, 1, 1, seed)[0] for seed in range(500)]
    assert all(60 < drawn.count(order) < 145 for order in set(drawn))
    assert len(set(drawn)) == 5


def test_the_seeds_of_a_run_do_not_change_from_one_version_to_the_next():
    """Runs are compared across machines and months, so this must never move."""
    document = [f"Sentence {i}." for i in range(10)]
    digest = hashlib.sha256(b"0\0news:1\x002").digest()
    assert document_seed(0, "news:1", 2) == int.from_bytes(digest[:8], "big")
    pairs = shuffled_orders(document, 2, 3, document_seed(0, "news:1", 2))
    assert pairs == [(2, 4, 0, 1, 3), (0, 3, 2, 4, 1), (3, 2, 4, 0, 1)]
    singles = shuffled_orders(document, 1, 1, document_seed(0, "news:1", 1))
    assert singles == [(9, 5, 7, 1, 2, 6, 4, 3, 0, 8)]


@given(st.integers(0, 30), st.integers(1, 12))
def test_blocks_keep_every_sentence_once_and_in_order(count, size):
    blocks = blocks_of(count, size)
    assert [i for block in blocks for i in block] == list(range(count))
    assert all(len(block) == size for block in blocks[:-1])


@given(st.data(), st.integers(1, 25), st.integers(1, 6))
def test_sentences_stay_together_in_their_blocks(data, count, size):
    order = data.draw(st.permutations(range(math.ceil(count / size))))
    found = sentence_order(count, size, order)
    assert sorted(found) == list(range(count))
    document = [f"<{i}>" for i in range(count)]
    assert " ".join(document[i] for i in found) == text(document, size, tuple(order))


@given(st.integers(), st.text(), st.integers(1, 20), st.integers(1, 20))
def test_a_seed_belongs_to_one_document_and_block_size(seed, name, size, other):
    assert document_seed(seed, name, size) == document_seed(seed, name, size)
    if size != other:
        assert document_seed(seed, name, size) != document_seed(seed, name, other)
    assert document_seed(seed, name, size) != document_seed(seed, name + "x", size)
    assert document_seed(seed, name, size) != document_seed(seed + 1, name, size)
