"""Vectors by the GPU's way, run on a CPU, against a plain loop: end to end or padded, tokenised ahead, read late."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.backends.hf.encoder import _pooled
from ensue.backends.hf.stream import EndToEndRun, PaddedRun, QuickTokenizer, joined, stream
from ensue.backends.names import load_model
from ensue.scoring import texts as texts_module
from ensue.scoring.texts import end_to_end, lay, probed
from tests.support import tiny

FAMILIES = ("encoder", "bert", "roberta", "llama", "gpt2")
TEXTS = [*tiny.SENTENCES, "A dog.", " ".join(tiny.SENTENCES), "x", "A dog.", " ".join(tiny.SENTENCES[:4])]


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("models") / request.param
    return load_model(str(getattr(tiny, f"save_{request.param}")(folder)), device="cpu")


def vectors(model, texts, way, *, layers=None, pooling="mean", chunk=4):
    """All texts' vectors by one of the two ways."""
    all_layers = layers is not None or pooling == "cls-average-over-layers"
    run = PaddedRun(model.network, 0, all_layers=all_layers)
    if way == "end to end":
        found = probed(model.network)
        assert found is not None
        run = EndToEndRun(found, run, all_layers=all_layers)
    pooled = partial(_pooled, layers=layers, pooling=pooling, normalise=False)
    out = {}
    for chosen, made in stream(run, model._quick, texts, pooled, chunk=chunk):
        assert not set(out) & set(chosen.tolist())
        out |= dict(zip(chosen.tolist(), made, strict=True))
    return np.stack([out[i] for i in range(len(texts))])


@pytest.mark.parametrize("way", ["padded", "end to end"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last", "cls-average-over-layers"])
def test_vectors_are_those_of_the_plain_way(model, way, pooling):
    expected = model.encode(TEXTS, pooling=pooling)
    np.testing.assert_allclose(vectors(model, TEXTS, way, pooling=pooling), expected, atol=2e-5)


@pytest.mark.parametrize("way", ["padded", "end to end"])
def test_any_layers_are_those_of_the_plain_way(model, way):
    expected = model.encode(TEXTS, layers=[2, 0, -2], pooling="mean")
    found = vectors(model, TEXTS, way, layers=[2, 0, -2])
    np.testing.assert_allclose(found, expected, atol=2e-5)


@given(
    st.lists(st.sampled_from([*TEXTS, "", "Where"]), min_size=1, max_size=12),
    st.sampled_from(["padded", "end to end"]),
    st.integers(1, 5),
)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_text_changes_another(model, texts, way, chunk):
    found = vectors(model, texts, way, chunk=chunk)
    expected = np.concatenate([model.encode([text]) for text in texts])
    full = [i for i, text in enumerate(texts) if model._tokenised([text])["input_ids"][0]]
    np.testing.assert_allclose(found[full], expected[full], atol=2e-5)
    assert np.isfinite(found).all()


def test_batches_end_to_end_fill_the_budget(model, monkeypatch):
    monkeypatch.setattr("ensue.backends.hf.stream._BATCH_TOKENS", 10)
    way = EndToEndRun(probed(model.network), PaddedRun(model.network, 0, all_layers=False), all_layers=False)
    lengths = np.asarray([3, 12, 1, 4, 2, 9, 0, 5])
    chosen = [batch.tolist() for batch in way.batches(lengths)]
    assert chosen == [[1], [5], [7, 3], [0, 4, 2, 6]]


def test_only_half_precision_on_a_gpu_is_run_end_to_end(model):
    assert end_to_end(model.network) is None


def test_a_network_that_lets_texts_see_each_other_is_not_run_end_to_end(model, monkeypatch):
    def leaks(query, key, value, row, scaling, causal):
        attend = torch.nn.functional.scaled_dot_product_attention
        return attend(query, key, value, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]).transpose(
            1, 2
        )

    monkeypatch.setattr(texts_module, "_one_by_one", leaks)
    assert probed(model.network) is None


def test_positions_are_part_of_the_probe(model, monkeypatch):
    monkeypatch.setattr(texts_module, "_first_position", lambda trunk: 5)
    moved = probed(model.network)
    # Rotations know only how far apart tokens are.
    assert (moved is None) == (type(model.network).__name__ != "LlamaForCausalLM")


def test_the_model_attends_as_before_afterwards(model):
    before = model.network.config._attn_implementation
    assert probed(model.network) is not None
    assert model.network.config._attn_implementation == before


@given(st.lists(st.lists(st.integers(0, 50), max_size=6), min_size=1, max_size=8), st.data())
@settings(max_examples=50, deadline=None)
def test_texts_are_laid_and_padded_as_a_loop_does(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=6))
    tokens = joined(rows).take(np.asarray(chosen))
    expected = [token for i in chosen for token in rows[i]]
    assert tokens.ids.tolist() == expected
    assert tokens.lengths.tolist() == [len(rows[i]) for i in chosen]
    row = lay(tokens.ids, tokens.lengths, torch.device("cpu"), first=2)
    assert row.positions.tolist() == [2 + place for i in chosen for place in range(len(rows[i]))]
    if not expected:
        return
    padded, mask = row.padded(row.ids)
    for place, i in enumerate(chosen):
        assert padded[place][mask[place]].tolist() == rows[i]


@pytest.mark.parametrize("limit", [None, 7])
def test_quick_tokens_are_the_tokenizers_own(model, limit):
    def plain(texts):
        return model.tokenizer(
            list(texts), truncation=limit is not None, max_length=limit, return_attention_mask=False
        )["input_ids"]

    quick = QuickTokenizer(model.tokenizer, limit, plain)
    found = quick(TEXTS)
    assert quick._own is not None
    assert found.ids.tolist() == [token for row in plain(TEXTS) for token in row]
    assert found.lengths.tolist() == [len(row) for row in plain(TEXTS)]


def test_a_tokenizer_that_does_more_in_python_is_asked_itself(model):
    def plain(texts):
        return [[1, 2, 3] for _ in texts]

    quick = QuickTokenizer(model.tokenizer, None, plain)
    assert quick(TEXTS).ids.tolist() == [1, 2, 3] * len(TEXTS)
    assert quick._own is None
    assert quick(["x"]).lengths.tolist() == [3]
