"""METEOR: what NLTK itself says of the same words, by hand, and words divided as NLTK divides them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from nltk.tokenize import word_tokenize
from nltk.translate.meteor_score import meteor_score

from ensue.metrics.meteor import meteor_of, tokens
from ensue.metrics.overlap import stem

SYNONYMS = {"stone": {"rock", "pebble"}, "rock": {"stone", "sway"}, "mill": {"plant", "factory"}}
WORDS = ["the", "The", "mill", "mills", "milling", "stone", "rocks", "rock", "sway", "plant", ","]
TEXTS = some.lists(some.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)


def synonyms(word: str) -> set[str]:
    return SYNONYMS.get(word, set())


class Lemma(str):
    def name(self) -> str:
        return str(self)


class Synset(list[str]):
    def lemmas(self) -> list[Lemma]:
        return [Lemma(one) for one in self]


class Reader:
    """A WordNet of a few words, as NLTK's own reader gives it: a synset for every pair."""

    def synsets(self, word: str) -> list[Synset]:
        return [Synset([word, other]) for other in sorted(synonyms(word))]


@settings(max_examples=150, deadline=None)
@given(TEXTS, some.lists(TEXTS, min_size=1, max_size=3))
def test_it_is_nltks_own(candidate: str, references: list[str]) -> None:
    (found,) = meteor_of([candidate], [references], synonyms)
    for value, reference in zip(found, references, strict=True):
        assert value == pytest.approx(meteor_score([reference.split()], candidate.split(), wordnet=Reader()))
    wanted = meteor_score([one.split() for one in references], candidate.split(), wordnet=Reader())
    assert max(found) == pytest.approx(wanted)


def test_the_formula_by_hand() -> None:
    (row,) = meteor_of(["A stone fell on mills."], [["On the mill a rock fell."]], synonyms)
    # Matched: a–a, stone–rock, fell–fell in one chunk; on–on; mills–mill; the full stop.
    precision, recall, chunks = 6 / 6, 6 / 7, 4
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    assert row == pytest.approx([mean * (1 - 0.5 * (chunks / 6) ** 3)])
    assert meteor_of(["", "a"], [["a"], [""]], synonyms) == [[0.0], [0.0]]


def test_words_are_divided_sentence_by_sentence_as_nltk_divides_them() -> None:
    sentences = [
        "“Don't,” she said at 3.30 p.m. to Mrs. Orr.",
        "They can't (co-op) cost $5,000!",
        "It's over.",
    ]
    # One sentence needs no trained data: `preserve_line` leaves it whole.
    wanted = [word for one in sentences for word in word_tokenize(one, preserve_line=True)]
    assert tokens(" ".join(sentences)) == wanted
    assert wanted[-3:] == ["'s", "over", "."]
    assert tokens(" ") == []


def test_every_word_is_looked_up_once() -> None:
    asked: Counter[str] = Counter()

    def counted(word: str) -> set[str]:
        asked[word] += 1
        return synonyms(word)

    meteor_of(["a mill stone", "a mill rock"], [["pebble", "sway"]] * 2, counted)
    assert asked == {"a": 1, "mill": 1, "stone": 1, "rock": 1}


def test_candidates_and_references_belong_together() -> None:
    for candidates, references in ((["a"], []), (["a"], [["a"], ["b"]])):
        with pytest.raises(ValueError, match="zip"):
            meteor_of(candidates, references, synonyms)


def test_every_word_is_stemmed_once() -> None:
    stem.cache_clear()
    meteor_of(["mills milling"] * 3, [["mill milled"]] * 3, synonyms)
    assert stem.cache_info().misses == 4
