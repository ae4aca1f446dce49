"""Negatives: the gold's index on every one of them, from other works where that is asked, never the gold itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.chapterbreak.data.examples import Example, example_id
from ensue.benchmarks.chapterbreak.data.negatives import Suffix, out_of_book, reservoir, with_index
from ensue.text.works.headings import split_index

INDICES = ["", "CHAPTER III.", "Chapter 12", "IV.", "Chapter the Second", "BOOK II\nCHAPTER I"]
TITLES = ["", " The Letter", "\nThe Letter", "\n\nThe Letter", ": A Journey"]
BODIES = [
    "It was late when the ferry left.",
    "“Come in,” said the miller.",
    "Nobody had seen the dog since May.",
]


def start(index, title, body):
    return f"{index}{title}\n\n{body}".lstrip(" \n:")


starts = st.builds(start, st.sampled_from(INDICES), st.sampled_from(TITLES), st.sampled_from(BODIES))


@given(starts, starts)
def test_a_rewritten_text_begins_with_the_golds_index_and_keeps_its_own_words(gold, text):
    made = with_index(gold, text)
    index, _ = split_index(gold)
    assert made.startswith(index)
    assert split_index(made)[0] == index
    assert made.split()[len(index.split()) :] == split_index(text)[1].split()


@given(starts)
def test_rewriting_with_its_own_index_changes_nothing(text):
    assert with_index(text, text) == text


@pytest.mark.parametrize(
    ("gold", "text", "made"),
    [
        ("CHAPTER III. The Letter\n\nIt", "CHAPTER IX. The Fair\n\nNo", "CHAPTER III. The Fair\n\nNo"),
        ("III\n\nIt rained.", "The Fair\n\nNobody came.", "III\n\nThe Fair\n\nNobody came."),
        ("CHAPTER III. The Letter\n\nIt", "The Fair\n\nNobody", "CHAPTER III. The Fair\n\nNobody"),
        ("The Letter\n\nIt rained.", "IX. The Fair\n\nNobody came.", "The Fair\n\nNobody came."),
        (
            "CHAPTER III. The Letter\n\nIt",
            "Nobody had come to the fair since the bridge at the mill had fallen in.",
            "CHAPTER III.\n\nNobody had come to the fair since the bridge at the mill had fallen in.",
        ),
    ],
)
def test_the_joint_is_the_golds_own(gold, text, made):
    assert with_index(gold, text) == made


def corpus(works=8, splits=("a", "b"), boundaries=("chapter", "cause")):
    return [
        Example(
            example_id(boundary, split, f"{split}{work}", n),
            split,
            f"{split}{work}",
            boundary,
            "Rain fell.",
            f"CHAPTER {'IVX'[n]}.\n\n{boundary} {split} {work} {n}",
            ("old",),
        )
        for boundary in boundaries
        for split in splits
        for work in range(works)
        for n in range(3)
    ]


@pytest.mark.parametrize("kind", ["same-split", "other-split"])
def test_out_of_book_negatives_are_other_works_golds(kind):
    examples = corpus()
    found, skipped = out_of_book(examples, kind, seed=3)
    assert skipped == {}
    assert [e.id for e in found] == [e.id for e in examples]
    for before, after in zip(examples, found, strict=True):
        assert (after.gold, after.context) == (before.gold, before.context)
        assert len(set(after.negatives)) == 5
        for text in after.negatives:
            index, words = text.split("\n\n")
            boundary, split, work, _ = words.split()
            assert boundary == after.boundary
            assert (split == after.split) == (kind == "same-split")
            assert split + work != after.work
            if boundary == "chapter":
                assert index == after.gold.split("\n\n")[0]
    assert out_of_book(examples, kind, seed=3) == (found, {})
    assert out_of_book(examples, kind, seed=4)[0] != found


def test_examples_with_too_few_other_works_are_counted():
    examples = corpus(works=2, splits=("a",), boundaries=("chapter",))
    found, skipped = out_of_book(examples, "same-split", seed=0)
    assert found == []
    assert skipped == {"examples for which other works have fewer than five suffixes": 6}
    assert len(out_of_book(examples, "same-split", seed=0, count=3)[0]) == 6


def test_suffixes_that_become_alike_are_one():
    same = [
        Example(f"a/{n}/0", "a", str(n), "chapter", "Rain.", f"CHAPTER {n}.\n\nThe same morning.", ("old",))
        for n in range(1, 12)
    ]
    assert out_of_book(same, "same-split", seed=0)[0] == []


def test_a_reservoir_is_bounded_and_fair():
    suffixes = [Suffix("a", str(n), "chapter", f"text {n}") for n in range(60)]
    assert reservoir(suffixes, 100, 0) == suffixes
    counts = Counter(s.work for seed in range(600) for s in reservoir(suffixes, 10, seed))
    assert sum(counts.values()) == 6000
    # 100 is expected of each, with a standard deviation of about 9.
    assert np.abs(np.array([counts[str(n)] for n in range(60)]) - 100).max() < 45
