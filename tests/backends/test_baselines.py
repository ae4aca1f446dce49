"""The baselines: chance, and words without order."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ensue
from ensue.backends.baselines import RandomModel, UnigramModel
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models import Encoder, Generator, Scorer
from ensue.models.request import Policy

words = st.lists(st.sampled_from(["the", "dog", "The", "ran", ",", "zebra", "café"]), min_size=1, max_size=8)


def test_they_score_and_do_nothing_else():
    for model in (load_model("random"), load_model("unigram")):
        assert isinstance(model, Scorer)
        assert not isinstance(model, Encoder)
        assert not isinstance(model, Generator)


def test_random_gives_every_text_its_own_score_again_and_again():
    texts = [f"Text number {i}." for i in range(200)]
    first = ensue.score(texts, model=RandomModel()).scores
    assert ensue.score(texts, model=RandomModel()).scores == first
    assert len({score.logprob for score in first}) == 200
    assert ensue.score(texts, model=RandomModel(seed=1)).scores != first
    assert all(score.logprob < 0 and score.tokens == 4 for score in first)


@given(words, st.randoms())
def test_unigram_is_blind_to_order(chosen, generator):
    model = UnigramModel(["The dog ran, and the dog ran."], "a test")
    mixed = list(chosen)
    generator.shuffle(mixed)
    one, other = ensue.score([" ".join(chosen), " ".join(mixed)], model=model).scores
    assert one == other


def test_unigram_scores_are_smoothed_counts_of_words_in_any_case():
    model = UnigramModel(["the dog the cat"], "a test")
    # Four words of three kinds: half a count is added to each kind, as much and one more is kept for others.
    total = 4 + 3 + 1
    scores = ensue.score(["the", "dog", "The"], model=model).scores
    assert [s.logprob for s in scores] == pytest.approx(
        [math.log(2.5 / total), math.log(1.5 / total), math.log(2.5 / total)]
    )


def test_an_unknown_word_is_spelled():
    model = UnigramModel(["the dog"], "a test")
    known, unknown, longer = (s.logprob for s in ensue.score(["the", "hot", "hothothot"], model=model).scores)
    assert longer < unknown < known


def test_a_continuation_is_scored_after_its_context():
    model = UnigramModel(["the dog ran"], "a test")
    whole, part = ensue.score([("", "the dog ran"), ("the dog", " ran")], model=model).scores
    assert (whole.tokens, part.tokens) == (3, 1)
    assert part.logprob == pytest.approx(ensue.score(["ran"], model=model).scores[0].logprob)


def test_unigram_counts_the_documents_of_a_file(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("zebra zebra zebra.")
    here, elsewhere = load_model(f"unigram:{path}"), load_model("unigram")
    (one,), (other,) = (ensue.score(["zebra"], model=model).scores for model in (here, elsewhere))
    assert one.logprob > other.logprob
    assert here.card.identity != elsewhere.card.identity
    assert here.card.source == str(path)


def test_a_length_means_nothing_to_them():
    with pytest.raises(EnsueError, match="random has no length limit"):
        ensue.score(["a"], model="random", policy=Policy(max_length=10))
