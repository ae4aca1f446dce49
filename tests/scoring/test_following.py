"""How well sentences follow, against sums of log-likelihoods asked for one at a time."""

from __future__ import annotations

import numpy as np
import pytest

import ensue
from ensue.models.request import Request
from ensue.scoring import following
from ensue.scoring.engine import score
from ensue.scoring.following import (
    POLICY,
    Following,
    Pieces,
    context_starts,
    follow,
    head_of,
    like_those_around,
    measure,
)
from tests.support import tiny
from tests.support.corpus import document

NOTHING = "\n\n"


@pytest.fixture(scope="module")
def scorer(tmp_path_factory):
    return ensue.load_model(str(tiny.save_llama(tmp_path_factory.mktemp("m") / "llama", max_length=512)))


def alone(scorer, continuation: str, context: str) -> float:
    return score(scorer, [Request(continuation, context)], policy=POLICY).scores[0].logprob


def test_each_number_is_a_difference_of_two_log_likelihoods(scorer):
    texts = [document(0, 4), document(1, 1), document(2, 2), document(3, 5)]
    found, scored = measure(scorer, [Pieces.joined(text) for text in texts])
    for text, (whole, sentences) in zip(texts, found, strict=True):
        assert whole.logprob == pytest.approx(alone(scorer, " ".join(text), ""), abs=1e-4)
        assert len(sentences) == len(text)
        assert (sentences[0].received, sentences[0].logprob, sentences[-1].given) == (None, None, None)
        for place in range(1, len(text)):
            before = " ".join(text[:place])
            here = alone(scorer, " " + text[place], before)
            assert sentences[place].logprob == pytest.approx(here, abs=1e-4)
            received = here - alone(scorer, text[place], NOTHING)
            assert sentences[place].received == pytest.approx(received, abs=1e-4)
            tokens = len(scorer.tokenizer(f"{before} {text[place]}")["input_ids"])
            tokens -= len(scorer.tokenizer(before)["input_ids"])
            assert sentences[place].gain == pytest.approx(received / tokens, abs=1e-4)
        assert sentences[0].given is None
        for place in range(2, len(text)):
            head = head_of(" " + text[place])
            assert head.split() == text[place].split()[:8]
            with_it = alone(scorer, head, " ".join(text[:place]))
            without = alone(scorer, head, " ".join(text[: place - 1]))
            assert sentences[place - 1].given == pytest.approx(with_it - without, abs=1e-4)
    assert scored.tokens
    assert any(len(one.split()) > 8 for text in texts for one in text[2:]), "a head is less than a sentence"


def test_likeness_is_the_mean_cosine_with_the_three_most_alike_of_those_around():
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(50, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = like_those_around(vectors)
    for place in range(50):
        near = [other for other in range(50) if other != place and abs(other - place) <= 20]
        cosines = sorted(float(vectors[place] @ vectors[other]) for other in near)
        assert found[place] == pytest.approx(sum(cosines[-3:]) / 3)
    assert like_those_around(vectors[:1]).tolist() == [0.0]
    assert like_those_around(vectors[:2]).tolist() == pytest.approx([float(vectors[0] @ vectors[1])] * 2)


def test_each_text_has_its_own_likeness_and_what_a_reader_says_of_it(scorer, tmp_path):
    encoder = ensue.load_model(str(tiny.save_encoder(tmp_path / "encoder")))
    reader = ensue.load_model(str(tiny.save_reader(tmp_path / "reader")))
    texts = [document(0, 4), document(1, 1), document(2, 6)]
    found, _ = follow(scorer, [Pieces.joined(text) for text in texts], encoder=encoder, reader=reader)
    for text, sentences in zip(texts, found, strict=True):
        vectors = np.asarray(encoder.encode(text), dtype=float)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        (read,) = reader.read([text])
        assert [one.belonging for one in sentences] == pytest.approx(read, abs=1e-4)
        likeness = like_those_around(vectors).tolist() if len(text) > 1 else [None]
        assert [one.likeness for one in sentences] == pytest.approx(likeness, abs=1e-4)


def test_a_sentence_is_read_after_six_thousand_characters_at_least_and_three_times_that_at_most():
    generator = np.random.default_rng(5)
    ends = np.cumsum(generator.integers(1, 900, 300)).tolist()
    starts = context_starts(ends)
    begins = [0, *ends[:-1]]
    assert len(set(starts)) > 5
    for begin, start in zip(begins, starts, strict=True):
        assert start in begins
        assert min(begin, 6_000) <= begin - start <= 18_000
    # It moves as seldom as that allows, for what is shared is read once.
    assert all(
        begins[place] - starts[place - 1] > 18_000
        for place in range(1, 300)
        if starts[place] > starts[place - 1]
    )


def test_the_share_of_next_to_no_surprisal_is_that_of_one_nat():
    assert Following(5, 3.0, None, None, -9.0).share == pytest.approx(0.25)
    assert Following(1, -0.5, None, None, -0.6).share == pytest.approx(-0.5)
    assert Following(0, None, None, None).share is None


def test_without_the_texts_the_sentences_have_the_same_measures(scorer):
    texts = [Pieces.joined(document(seed, count)) for seed, count in ((0, 3), (1, 1), (2, 6))]
    with_them, _ = measure(scorer, texts)
    without, scored = follow(scorer, texts)
    for one, (_, other) in zip(without, with_them, strict=True):
        for a, b in zip(one, other, strict=True):
            assert np.allclose([x or 0.0 for x in a], [x or 0.0 for x in b], atol=1e-4)
    # A sentence in context, alone, and without the one before it: of n sentences n-1, n-1 and n-2.
    assert len(scored.scores) == 5 + 0 + 14


def test_in_a_long_text_a_sentence_is_all_that_differs_between_with_and_without_it(scorer, monkeypatch):
    monkeypatch.setattr(following, "_CONTEXT", 100)
    text = document(0, 12)
    found, _ = follow(scorer, [Pieces.joined(text)])
    begin = following.context_starts(Pieces.joined(text).ends)
    assert len(set(begin)) > 2
    whole, ends = " ".join(text), Pieces.joined(text).ends
    for place in range(2, 12):
        context = whole[begin[place] : ends[place - 1]]
        shorter = whole[begin[place] : ends[place - 2]]
        head = head_of(" " + text[place])
        wanted = alone(scorer, head, context) - alone(scorer, head, shorter or NOTHING)
        assert found[0][place - 1].given == pytest.approx(wanted, abs=1e-4)
