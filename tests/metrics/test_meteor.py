"""METEOR against every possible alignment of short texts, against NLTK where both must agree, and by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.meteor_score import single_meteor_score

from ensue.metrics.meteor import (
    CLASSIC,
    Parameters,
    align,
    count_chunks,
    meteor,
    meteor_of,
    no_senses,
    tokens,
)
from ensue.metrics.meteor_links import make_links
from ensue.metrics.meteor_nltk import nltk_meteor
from ensue.metrics.meteor_search import fewest_chunks
from ensue.metrics.meteor_tiles import tiled
from ensue.metrics.overlap import best, mean
from ensue.metrics.texts import stem

SENSES = {
    "stone": frozenset("rm"),
    "rock": frozenset("rs"),
    "pebble": frozenset("m"),
    "sway": frozenset("s"),
    "mill": frozenset("f"),
    "plant": frozenset("fp"),
    "plants": frozenset("fp"),
}
VOCABULARY = [
    "the",
    "mill",
    "mills",
    "milling",
    "stone",
    "rock",
    "rocks",
    "pebble",
    "sway",
    "plant",
    "plants",
]
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=6)
FEW = st.lists(st.sampled_from(["the", "mill", "of", "mills"]), max_size=7)


def senses(word: str) -> frozenset[str]:
    return SENSES.get(word, frozenset())


def stage(one: str, other: str) -> int | None:
    if one == other:
        return 0
    if stem(one) == stem(other):
        return 1
    return 2 if senses(one) & senses(other) else None


def alignments(
    candidate: Sequence[str], reference: Sequence[str], i: int = 0
) -> Iterator[list[tuple[int, int]]]:
    """Every way to match some words of the candidate with words of the reference."""
    if i == len(candidate):
        yield []
        return
    for rest in alignments(candidate, reference, i + 1):
        yield rest
        taken = {j for _, j in rest}
        for j, word in enumerate(reference):
            if j not in taken and stage(candidate[i], word) is not None:
                yield [(i, j), *rest]


def worth(
    candidate: Sequence[str], reference: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> tuple[int, ...]:
    """Matches by stage, and chunks by walking along the pairs."""
    stages = Counter(stage(candidate[i], reference[j]) for i, j in pairs)
    chunks = 0
    for before, (i, j) in zip([(-9, -9), *pairs], pairs, strict=False):
        chunks += before != (i - 1, j - 1)
    return stages[0], stages[1], stages[2], -chunks


@settings(max_examples=250, deadline=None)
@given(WORDS | FEW, WORDS | FEW)
def test_no_alignment_is_better(candidate: list[str], reference: list[str]) -> None:
    found = align(candidate, reference, senses)
    most = max(worth(candidate, reference, pairs) for pairs in alignments(candidate, reference))
    assert worth(candidate, reference, found.pairs) == most
    assert found.chunks == -most[3]


@settings(max_examples=250, deadline=None)
@given(*[st.lists(st.sampled_from(VOCABULARY), max_size=20)] * 2)
def test_the_quick_way_matches_as_many(candidate: list[str], reference: list[str]) -> None:
    links = make_links(candidate, reference, stem, senses)
    pairs, wanted = tiled(links), fewest_chunks(links, 4000)
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    assert all(stage(candidate[i], reference[j]) is not None for i, j in pairs)
    if wanted is None:
        return
    quick, best_one = worth(candidate, reference, pairs), worth(candidate, reference, wanted)
    assert quick[:2] == best_one[:2]
    assert quick[2:] <= best_one[2:]


def test_the_quick_way_is_near_the_fewest_chunks() -> None:
    generator = random.Random(3)
    extra = quick = 0
    for _ in range(150):
        blocks = [generator.choices(VOCABULARY, k=generator.randint(1, 5)) for _ in range(5)]
        one = list(chain(*blocks))
        generator.shuffle(blocks)
        links = make_links(one, list(chain(*blocks)), stem, no_senses)
        wanted = fewest_chunks(links, 3000)
        if wanted is not None:
            quick += count_chunks(wanted)
            extra += count_chunks(tiled(links)) - count_chunks(wanted)
    assert quick > 100
    assert 0 <= extra <= 0.15 * quick


@settings(max_examples=150, deadline=None)
@given(*[st.lists(st.sampled_from(VOCABULARY), max_size=8, unique=True)] * 2)
def test_nltk_agrees_where_no_word_comes_twice(candidate: list[str], reference: list[str]) -> None:
    different = {stem(word): word for word in VOCABULARY}.values()
    one, two = ([word for word in words if word in different] for words in (candidate, reference))
    found = meteor(one, two, no_senses)
    theirs = single_meteor_score(two, one, wordnet=_Nothing())
    assert found.score == pytest.approx(theirs)
    assert 0.0 <= found.score <= 1.0


@settings(max_examples=150, deadline=None)
@given(WORDS | FEW, WORDS | FEW)
def test_nltks_own_score_under_its_own_name(candidate: list[str], reference: list[str]) -> None:
    found = nltk_meteor(candidate, reference, lambda word: ())
    assert found.score == pytest.approx(single_meteor_score(reference, candidate, wordnet=_Nothing()))
    assert found.chunks >= meteor(candidate, reference, no_senses).chunks
    assert found.matches == meteor(candidate, reference, no_senses).matches


class _Nothing:
    """A WordNet without words."""

    def synsets(self, word: str) -> list[object]:
        return []


def test_the_formula_by_hand() -> None:
    found = meteor(tokens("a stone fell on mills"), tokens("on the mill a rock fell"), senses)
    # Matched: a–a, stone–rock, fell–fell in one chunk; on–on; mills–mill.
    precision, recall = 5 / 5, 5 / 6
    f = precision * recall / (0.9 * precision + 0.1 * recall)
    assert found == pytest.approx((f * (1 - 0.5 * (3 / 5) ** 3), precision, recall, 5, 3))
    light = meteor(["a", "stone"], ["stone", "a"], senses, Parameters(alpha=0.5, beta=1.0, gamma=0.2))
    assert light.score == pytest.approx(0.8)
    assert CLASSIC == (0.9, 3.0, 0.5)


def test_a_long_text_with_itself_is_one_chunk() -> None:
    text = "the mill of the town and the mill of the lord and the mill of the church, all of them, " * 12
    found = meteor_of([text], [[text, "nothing"]], no_senses)[0]
    n = len(tokens(text))
    assert found[0] == pytest.approx((1 - 0.5 / n**3, 1.0, 1.0, n, 1))
    assert found[1] == (0.0, 0.0, 0.0, 0, 0)
    assert best(found) == best(found[::-1])
    assert mean(found).score == pytest.approx(found[0].score / 2)


def test_words_and_marks() -> None:
    assert tokens("“Don't,” she said—at 3.30 a.m. (co-op)") == (
        ["“", "don't", ",", "”", "she", "said", "—", "at", "3.30", "a.m", ".", "(", "co-op", ")"]
    )
    assert tokens(" ") == []
    assert meteor([], ["a"], no_senses).score == meteor(["a"], [], no_senses).score == 0.0
