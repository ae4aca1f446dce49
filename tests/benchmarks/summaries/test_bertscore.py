"""BERTScore against a loop over single texts and single tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.backends.names import load_model
from ensue.benchmarks.summaries.bertscore import (
    WeighedTokens,
    bertscore_of,
    layer_for,
    match,
    unit,
)
from ensue.models.card import ModelCard
from ensue.models.protocols import TextTokens
from tests.support import tiny

POOL = [*tiny.SENTENCES[:5], "A dog.", "The rain stopped.", ""]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load_model(str(tiny.save_encoder(tmp_path_factory.mktemp("models") / "encoder")))


def naive(model, candidate: str, reference: str, layer: int) -> list[float]:
    """One pair, token by token: all may be matched, the first and the last ([CLS] and [SEP]) weigh nothing."""

    def states(text: str) -> tuple[list[int], list[torch.Tensor]]:
        ids = model.tokenizer(text)["input_ids"]
        with torch.inference_mode():
            found = model.network(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]
        return ids, list(found.double())

    def share(one, other) -> float:
        if len(one[0]) == 2 or len(other[0]) == 2:
            return 0.0
        nearest = [max(float(torch.cosine_similarity(v, w, dim=0)) for w in other[1]) for v in one[1][1:-1]]
        return sum(nearest) / len(nearest)

    given_, wanted = states(candidate), states(reference)
    precision, recall = share(given_, wanted), share(wanted, given_)
    f1 = 2 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0
    return [precision, recall, f1]


class Edged:
    """An encoder of one word between two special tokens, of which the first is near the other text's word."""

    card = ModelCard(name="edged", kind="encoder", source="test")

    def encode_tokens(self, texts, layer=None):
        rows = {"a": [[1, 0], [0.6, 0.8], [-1, 0]], "b": [[0.6, 0.8], [0, 1], [-1, 0]]}
        return [np.asarray(rows[text], np.float32) for text in texts]

    def text_tokens(self, texts):
        return [TextTokens([0, 5, 1], [True, False, True]) for _ in texts]


def test_a_word_may_be_matched_with_a_special_token_that_weighs_nothing() -> None:
    ((found,),) = bertscore_of(Edged(), ["a"], [["b"]])
    # The word of `a` is b's first token (cosine 1), b's word is nearest a's word (0.8).
    assert found == pytest.approx((1.0, 0.8, 2 * 0.8 / 1.8))


def test_the_layer_that_was_tuned_for_a_model() -> None:
    assert layer_for("roberta-large") == layer_for("FacebookAI/roberta-large") == 17
    assert layer_for("bert-base-uncased") == 9
    assert layer_for("microsoft/deberta-xlarge-mnli") == 40
    assert layer_for("minilm") is None
    assert layer_for("roberta-large", 3) == 3
    assert layer_for("roberta-large", 0) == 0


def test_the_tuned_layer_is_taken_where_none_is_named(model, tmp_path) -> None:
    """A network of two layers under a name whose tuned layer is 9 has no such layer; of twelve it has."""
    deep = load_model(str(tiny.save_encoder(tmp_path / "bert-base-uncased", layers=12)))
    candidates, references = POOL[:2], [POOL[2:4], POOL[3:5]]
    found = bertscore_of(deep, candidates, references)
    for candidate, own, row in zip(candidates, references, found, strict=True):
        np.testing.assert_allclose(row, [naive(deep, candidate, one, 9) for one in own], atol=1e-5)
    assert found != bertscore_of(deep, candidates, references, layer=12)


@pytest.mark.parametrize("layer", [None, 1])
def test_every_pair_by_itself(model, layer) -> None:
    candidates, references = [*POOL[:3], ""], [POOL[1:4], POOL[:1], [POOL[2], "", POOL[6]], POOL[:1]]
    found = bertscore_of(model, candidates, references, layer=layer)
    for candidate, own, row in zip(candidates, references, found, strict=True):
        expected = [naive(model, candidate, one, -1 if layer is None else layer) for one in own]
        np.testing.assert_allclose(row, expected, atol=1e-5)


def test_each_text_is_encoded_once(model) -> None:
    seen = []
    hook = model.network.register_forward_pre_hook(
        lambda _, args, given: seen.append(len(given["input_ids"])), with_kwargs=True
    )
    bertscore_of(model, POOL[:4], [POOL[:4]] * 4)
    hook.remove()
    assert sum(seen) == 4


@given(st.sampled_from(POOL[:7]), st.lists(st.sampled_from(POOL[:7]), min_size=1, max_size=3))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_identity_symmetry_and_order(model, candidate: str, references: Sequence[str]) -> None:
    (row,) = bertscore_of(model, [candidate], [list(references)])
    back = bertscore_of(model, list(references), [[candidate]] * len(references))
    for one, (other,) in zip(row, back, strict=True):
        assert -1.0 <= min(one) <= max(one) <= 1.0
        assert tuple(one) == pytest.approx((other.recall, other.precision, other.f1), abs=1e-5)
    same = bertscore_of(model, [candidate], [[candidate]])[0][0]
    assert tuple(same) == pytest.approx((1.0, 1.0, 1.0), abs=1e-5)
    turned = bertscore_of(model, [candidate], [list(references)[::-1]])[0]
    assert max(one.f1 for one in row) == pytest.approx(max(one.f1 for one in turned), abs=1e-5)
    assert np.mean(row, axis=0) == pytest.approx(np.mean(turned, axis=0), abs=1e-5)


def test_vectors_without_length_and_tokens_without_weight() -> None:
    axes = unit(np.asarray([[2.0, 0.0], [0.0, 0.0]], np.float32))
    np.testing.assert_array_equal(axes, [[1.0, 0.0], [0.0, 0.0]])
    both = WeighedTokens(axes, np.ones(2))
    assert match(both, [both])[0] == pytest.approx((0.5, 0.5, 0.5))
    assert match(WeighedTokens(axes, np.zeros(2)), [both])[0].f1 == 0.0
    opposite = WeighedTokens(-axes[:1], np.ones(1))
    assert match(WeighedTokens(axes[:1], np.ones(1)), [opposite]) == [(-1.0, -1.0, 0.0)]
