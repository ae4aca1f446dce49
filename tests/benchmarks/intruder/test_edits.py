"""Edits: only the places named differ, what comes in is of another document, and each kind is what it says."""

from __future__ import annotations

import math
import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.intruder import edits
from ensue.benchmarks.intruder.edits import KINDS, Pool, edit, negated

NAMES = ("Anna Berg", "Otto", "Paris", "Lake Garda")
VERBS = ("is", "was not", "has gone", "isn't")
words = st.sampled_from(("the boat", "a house", "old", "in", *VERBS, *NAMES, "12", "3,400", "21st", "island"))
sentences = st.lists(words, min_size=2, max_size=7).map(lambda found: "It said " + " ".join(found) + ".")
collections = st.lists(st.lists(sentences, min_size=6, max_size=12), min_size=2, max_size=5)


@given(collections, st.data(), st.sampled_from(KINDS), st.integers(0, 99))
def test_exactly_the_places_named_differ(documents, data, kind, seed):
    number = data.draw(st.integers(0, len(documents) - 1))
    own = documents[number]
    places = data.draw(st.permutations(range(1, len(own))))
    pool = Pool(documents)
    found = edit(number, kind, pool, places, Random(seed))
    assert found == edit(number, kind, Pool(documents), places, Random(seed))
    if found is None:
        return
    assert (found.kind, len(found.sentences)) == (kind, len(own))
    differing = [place for place, (a, b) in enumerate(zip(own, found.sentences, strict=True)) if a != b]
    assert tuple(differing) == found.places
    assert 0 not in found.places
    others = [s for other, document in enumerate(documents) if other != number for s in document]
    if kind == "swapped":
        one, other = found.places
        assert 3 <= other - one <= 6
        assert (found.sentences[one], found.sentences[other]) == (own[other], own[one])
        return
    (place,) = found.places
    new = found.sentences[place]
    if kind in ("random", "hard"):
        assert new in others
        assert new not in own
    if kind == "hard":
        there = [
            at / (len(d) - 1)
            for other, d in enumerate(documents)
            for at, s in enumerate(d)
            if other != number and s == new
        ]
        assert any(abs(at - place / (len(own) - 1)) <= 0.25 for at in there)
    if kind == "negated":
        assert abs(negations(new) - negations(own[place])) == 1
    if kind == "entity":
        lost, came = Counter(own[place].split()), Counter(new.split())
        # Two names may be those of one sentence in another order.
        assert new != own[place]
        assert not came - lost or any(word.strip(".") in text for word in came - lost for text in others)


def negations(sentence: str) -> int:
    return len(re.findall(r"\bnot\b|n't\b|n’t\b|\bcannot\b", sentence))


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("The mayor is here.", "The mayor is not here."),
        ("She can’t come.", "She can come."),
        ("They cannot swim.", "They can swim."),
        ("It won't end.", "It will end."),
        ("He did not go.", "He did go."),
        ("They have been told.", "They have not been told."),
        ("She had written it.", "She had not written it."),
    ],
)
def test_a_statement_becomes_its_opposite(sentence, wanted):
    assert negated(sentence, Random(0)) == wanted


@pytest.mark.parametrize(
    "sentence",
    [
        "An island, an arena and a candid mayor.",  # is, are, can and may begin these words
        "He has a dog.",
        "There is no doubt.",
        "It was never told.",
        "She opened a can of beans.",
        "It was not only long.",
        "He goes.",
    ],
)
def test_what_has_no_verb_to_turn_is_left(sentence):
    assert negated(sentence, Random(0)) is None


def test_every_verb_of_a_sentence_may_be_the_one():
    found = {negated("It was old and is not here.", Random(seed)) for seed in range(20)}
    assert found == {"It was not old and is not here.", "It was old and is here."}


def nearest(documents: list[list[str]], number: int, place: int) -> str | None:
    """By the definition, with nothing left out: the largest cosine of counts weighed by rarity."""
    every = [(d, p, s) for d, document in enumerate(documents) for p, s in enumerate(document)]
    bags = [Counter(re.findall(r"[a-z]+", s.lower())) for _, _, s in every]
    rarity = {w: math.log(len(bags) / sum(w in bag for bag in bags)) for bag in bags for w in bag}

    def dot(a, b):
        return sum(a[w] * b[w] * rarity[w] ** 2 for w in a)

    own = Counter(re.findall(r"[a-z]+", documents[number][place].lower()))
    best = (0.0, None)
    for (d, p, s), bag in zip(every, bags, strict=True):
        position = abs(p / (len(documents[d]) - 1) - place / (len(documents[number]) - 1))
        copy = sum((own & bag).values()) / sum((own | bag).values()) > 0.7
        norm = math.sqrt(dot(own, own) * dot(bag, bag))
        if d != number and position <= 0.25 and not copy and s not in documents[number] and norm:
            best = max(best, (dot(own, bag) / norm, s), key=lambda one: one[0])
    return best[1]


@pytest.mark.parametrize("seed", range(8))
def test_a_hard_intruder_is_the_nearest_by_its_words(seed):
    generator = Random(seed)
    vocabulary = ["".join(generator.choices("abcdefgh", k=4)) for _ in range(40)]
    documents = [
        [
            " ".join(generator.choices(vocabulary, k=generator.randint(3, 9)))
            for _ in range(generator.randint(6, 9))
        ]
        for _ in range(5)
    ]
    pool = Pool(documents)
    for number, document in enumerate(documents):
        for place in range(1, len(document)):
            found = edit(number, "hard", pool, [place], Random(0))
            assert (found.sentences[place] if found else None) == nearest(documents, number, place)


def test_a_near_copy_is_no_intruder():
    """The same report in two documents, but for a word, follows in both."""
    first = [f"Line {n} goes." for n in range(6)]
    second = [f"Row {n} stays." for n in range(6)]
    first[3] = "Shares of the whale museum fell by a third."
    second[3] = "Shares of the whale museum fell by a half."
    second[4] = "Few visit the museum."
    found = edit(0, "hard", Pool([first, second]), [3], Random(0))
    assert found is not None
    assert found.sentences[3] == "Few visit the museum."


def test_the_same_document_twice_lends_itself_nothing():
    first = [f"Sentence {n}." for n in range(6)]
    pool = Pool([first, list(first)])
    assert edit(0, "random", pool, [1, 2, 3], Random(0)) is None
    assert edit(0, "hard", pool, [1, 2, 3], Random(0)) is None


def test_random_intruders_come_from_every_other_document_alike():
    documents = [[f"{d} {n}" for n in range(6)] for d in range(4)]
    drawn = Counter(
        edit(1, "random", Pool(documents), [2], Random(seed)).sentences[2][0] for seed in range(600)
    )
    assert set(drawn) == {"0", "2", "3"}
    assert all(150 < count < 250 for count in drawn.values())


def test_an_entity_is_one_that_the_document_does_not_have():
    own = ["First.", "They met Otto in Paris.", "Then came Anna.", "So.", "It was 7.", "End."]
    other = [
        "There was Otto there.",
        "I saw Anna, and Bert.",
        "On the 21st he saw Paris.",
        "And 7.",
        "So.",
        "End.",
    ]
    for seed in range(20):
        found = edit(0, "entity", Pool([own, other]), [1], Random(seed))
        assert found.sentences[1] in {"They met Bert in Paris.", "They met Otto in Bert."}
    assert edit(0, "entity", Pool([own, other]), [4], Random(0)) is None
    assert edits._NUMBER.findall("the 21st of 3,400.5 in 1990s, 7.") == ["3,400.5", "1990", "7"]


def test_a_swap_is_with_any_sentence_three_to_six_off_but_the_first_and_equal_ones():
    own = [f"Sentence {n}." for n in range(12)]
    own[8] = own[4]
    pool = Pool([own, own])
    found = {edit(0, "swapped", pool, [4], Random(seed)).places for seed in range(80)}
    assert found == {(1, 4), (4, 7), (4, 9), (4, 10)}


def test_where_no_spaces_stand_between_words_a_hard_intruder_is_nearest_by_its_letters():
    own = ["天很蓝。", "我们走。", "老师在河边买了一只红猫。", "门开了。", "他笑了。", "夜来了。"]
    near, far = "学生在河边看见一只黑猫。", "新的雨伞找不到啊。"
    other = ["早上好。", "他来了吗？", near, far, "雨停了。", "大家睡了。"]
    found = edit(0, "hard", Pool([own, other]), [2], Random(0))
    assert found is not None
    assert found.sentences[2] == near
    # Words of other scripts are whole, beside such letters too.
    assert edits._words("GPT模型 and模") == Counter({"gpt": 1, "模": 2, "型": 1, "and": 1})
