"""BLEU of every order against sacrebleu asked for that order alone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU

from ensue.metrics.bleu import Bleu, bleu

PIECES = st.sampled_from(["The", "mill", "owner", "sold", "it,", "twice", "a", "river.", "(again)"])
TEXT = st.lists(PIECES, max_size=12).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(TEXT, st.lists(TEXT, min_size=1, max_size=3))
def test_segments(candidate: str, references: list[str]) -> None:
    found = bleu(candidate, references)
    for order, ours in enumerate(found, 1):
        theirs = BLEU(max_ngram_order=order, effective_order=True).sentence_score(candidate, references)
        assert ours == pytest.approx(theirs.score / 100.0, abs=1e-9)
    assert all(0.0 <= value <= 1.0 for value in found)
    assert found == bleu(candidate, references[::-1])


def test_a_text_with_itself_and_with_nothing() -> None:
    text = "the mill by the river was sold twice"
    assert bleu(text, [text]) == pytest.approx(Bleu(1.0, 1.0, 1.0, 1.0))
    assert bleu("", [text]) == Bleu(0.0, 0.0, 0.0, 0.0)
    # Two words have no trigram: the orders there are, are all right.
    assert bleu("the mill", ["the mill"]).bleu4 == pytest.approx(1.0)


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one reference"):
        bleu("the mill", [])
