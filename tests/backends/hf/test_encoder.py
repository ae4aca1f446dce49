"""Vectors against a plain loop: any layer, any pooling, in order, whatever else is in the batch."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ensue.backends.hf.batching import like_long
from ensue.backends.hf.encoder import stated_pooling
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import Generator, Layered, TokenEncoder, require
from tests.support import tiny

TEXTS = [
    tiny.SENTENCES[0],
    "A dog.",
    " ".join(tiny.SENTENCES[:3]),
    tiny.SENTENCES[5],
    "A dog.",
    " ".join(tiny.SENTENCES),  # longer than the model, so cut
    "x",
]


@pytest.fixture(scope="module", params=["encoder", "bert", "roberta", "llama", "gpt2"])
def folder(request, tmp_path_factory) -> Path:
    return getattr(tiny, f"save_{request.param}")(tmp_path_factory.mktemp("models") / request.param)


@pytest.fixture(scope="module")
def model(folder):
    return load_model(str(folder))


@pytest.fixture(scope="module")
def naive(folder):
    """One text at a time, every hidden state of the bare network."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def vectors(text: str, layer: int, pooling: str) -> np.ndarray:
        ids = tokenizer(text, truncation=True, max_length=128, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            states = network(input_ids=ids, output_hidden_states=True).hidden_states[layer][0]
        if pooling == "mean":
            return states.mean(0).numpy()
        return states[0 if pooling == "cls" else -1].numpy()

    return vectors


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_the_last_layer_pooled_as_asked(model, naive, pooling):
    found = model.encode(TEXTS, pooling=pooling)
    assert (found.shape, found.dtype) == ((len(TEXTS), 32), np.float32)
    expected = np.stack([naive(text, -1, pooling) for text in TEXTS])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found[0] - found[3]).max() > 0.01


def test_any_layers_in_the_order_they_are_named(model, naive):
    found = model.encode(TEXTS, layers=[2, 0, 1, -1], pooling="mean")
    assert found.shape == (len(TEXTS), 4, 32)
    expected = np.stack([[naive(text, layer, "mean") for layer in (2, 0, 1, 2)] for text in TEXTS])
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_first_token_averaged_over_all_layers_but_the_embedding(model, naive):
    found = model.encode(TEXTS, pooling="cls-average-over-layers")
    expected = np.stack([np.mean([naive(text, layer, "cls") for layer in (1, 2)], axis=0) for text in TEXTS])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    with pytest.raises(EnsueError, match="takes all layers together, so none can be chosen with it"):
        model.encode(TEXTS, layers=[1], pooling="cls-average-over-layers")


def test_all_layers_take_one_pass(model, naive):
    assert isinstance(model, Layered)
    assert model.layer_count == 2
    tokens = []
    hook = model.network.base_model.register_forward_pre_hook(
        lambda _, args, given: tokens.append(given["input_ids"].numel()), with_kwargs=True
    )
    texts = [text for text in TEXTS if text != TEXTS[5]]
    found = model.encode(texts, layers=range(model.layer_count + 1), pooling="cls")
    all_layers = sum(tokens)
    tokens.clear()
    model.encode(texts, pooling="cls")
    hook.remove()
    assert all_layers == sum(tokens) > 0
    expected = np.stack([[naive(text, layer, "cls") for layer in range(3)] for text in texts])
    np.testing.assert_allclose(found, expected, atol=1e-5)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=400), st.integers(1, 4096))
def test_batches_hold_each_text_once_with_little_padding(lengths, budget):
    batches = list(like_long(lengths, budget))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        width = max(1, *(lengths[i] for i in batch))
        room = width * len(batch)
        assert len(batch) == 1 or room <= budget
        padding = room - sum(lengths[i] for i in batch)
        assert len(batch) == 1 or padding <= room / 16 or room <= budget / 8


def test_mean_is_what_is_not_stated_otherwise(model):
    np.testing.assert_array_equal(model.encode(TEXTS), model.encode(TEXTS, pooling="mean"))


@given(
    st.lists(
        st.sampled_from([*tiny.SENTENCES, "A dog.", "x", " ".join(tiny.SENTENCES)]), min_size=1, max_size=40
    )
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_vector_does_not_depend_on_the_others(model, texts):
    together = model.encode(texts)
    alone = np.concatenate([model.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_no_texts_give_no_vectors(model):
    assert model.encode([]).shape == (0, 32)


def test_a_text_of_no_tokens_gives_numbers_and_does_not_spoil_its_neighbours(model):
    found = model.encode(["", TEXTS[0]])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[1], model.encode(TEXTS[:1])[0], atol=1e-5)


def test_what_there_is_not_is_one_sentence(model):
    with pytest.raises(EnsueError, match="no pooling 'max'; choose one of mean, cls, last"):
        model.encode(TEXTS, pooling="max")
    with pytest.raises(EnsueError, match=r"has layers 0 \(the embedding\) to 2"):
        model.encode(TEXTS, layers=[3])


def sentence_transformer(folder: Path, pooling: dict[str, bool], *kinds: str) -> Path:
    tiny.save_encoder(folder)
    modules = [{"idx": i, "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def test_pooling_is_read_from_the_folder(tmp_path):
    cls = sentence_transformer(tmp_path / "a", {"pooling_mode_cls_token": True}, "Transformer", "Pooling")
    last = sentence_transformer(tmp_path / "b", {"pooling_mode_lasttoken": True}, "Transformer", "Pooling")
    mean = sentence_transformer(
        tmp_path / "c", {"pooling_mode_mean_tokens": True}, "Transformer", "Pooling", "Normalize"
    )
    assert [stated_pooling(f) for f in (cls, last, mean)] == [("cls", False), ("last", False), ("mean", True)]
    plain = load_model(str(cls))
    np.testing.assert_array_equal(plain.encode(TEXTS), plain.encode(TEXTS, pooling="cls"))
    normalised = load_model(str(mean)).encode(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(normalised, axis=1), 1.0, atol=1e-6)
    assert load_model(str(mean)).card.identity != load_model(str(last)).card.identity != plain.card.identity
    raw = plain.encode(TEXTS, pooling="mean")
    np.testing.assert_allclose(normalised, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-6)


@pytest.mark.parametrize("content", ["{", "[1, 2]", '"mean"'])
def test_pooling_that_cannot_be_read_is_one_sentence(tmp_path, content):
    folder = sentence_transformer(tmp_path / "a", {}, "Transformer")
    (folder / "1_Pooling" / "config.json").write_text(content)
    with pytest.raises(EnsueError, match="states its pooling in a form that cannot be read"):
        load_model(str(folder))


def test_texts_that_are_cut_are_counted(model, folder):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    words = [" ".join(["sun"] * n) for n in range(8, 135, 3)]
    naive = sum(len(tokenizer(text)["input_ids"]) > 128 for text in [*words, *TEXTS])
    assert 0 < naive < len(words)
    assert model.count_cut([*words, *TEXTS]) == naive
    assert model.count_cut(TEXTS[:2]) == model.count_cut([]) == 0


TOKEN_TEXTS = [tiny.SENTENCES[0], "A dog.", "", " ".join(tiny.SENTENCES), tiny.SENTENCES[5], "A dog."]


@pytest.fixture(scope="module", params=["encoder", "bert", "roberta", "llama"])
def token_model(request, tmp_path_factory) -> TokenEncoder:
    folder: Path = tmp_path_factory.mktemp("models") / request.param
    return load_model(str(getattr(tiny, f"save_{request.param}")(folder)))


def naive_tokens(token_model, text: str, layer: int) -> tuple[list[int], np.ndarray]:
    # To a RoBERTa a text begins as a word within a sentence does.
    text = " " + text if text and "Roberta" in type(token_model.tokenizer).__name__ else text
    ids = token_model.tokenizer(text, truncation=True, max_length=token_model.card.max_length)["input_ids"]
    if not ids:
        return [], np.zeros((0, 32), np.float32)
    with torch.inference_mode():
        states = token_model.network.base_model(torch.tensor([ids]), output_hidden_states=True).hidden_states[
            layer
        ][0]
    return ids, states.numpy()


@pytest.mark.parametrize("layer", [None, 0, 1, -1])
def test_every_token_in_order_and_which_are_special(token_model, layer) -> None:
    found, tokens = token_model.encode_tokens(TOKEN_TEXTS, layer), token_model.text_tokens(TOKEN_TEXTS)
    assert [one.dtype for one in found] == [np.dtype(np.float32)] * len(TOKEN_TEXTS)
    special = set(token_model.tokenizer.all_special_ids) - {token_model.tokenizer.unk_token_id}
    for text, vectors, one in zip(TOKEN_TEXTS, found, tokens, strict=True):
        expected_ids, expected = naive_tokens(token_model, text, -1 if layer is None else layer)
        assert one.ids == expected_ids
        assert one.special == [token in special for token in expected_ids]
        assert vectors.shape == (len(one.ids), 32)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert len(found[3]) > 60
    assert all(tokens[2].special)


def test_space_around_a_text_is_no_part_of_it(token_model) -> None:
    one, two = token_model.text_tokens([" A dog.\n", "A dog."])
    assert one == two
    assert token_model.text_tokens([" \n"]) == token_model.text_tokens([""])


def test_what_there_is_not(token_model) -> None:
    assert token_model.encode_tokens([]) == token_model.text_tokens([]) == []
    with pytest.raises(EnsueError, match=r"has layers 0 \(the embedding\) to 2, and no layer 3"):
        token_model.encode_tokens(TOKEN_TEXTS, 3)


def test_it_is_asked_for_by_name(token_model) -> None:
    assert require(token_model, TokenEncoder, "BERTScore") is token_model
    with pytest.raises(
        EnsueError, match="BERTScore needs a model that can give vectors of tokens, but random can"
    ):
        require(load_model("random"), TokenEncoder, "BERTScore")
    assert isinstance(token_model, Generator) == (token_model.card.kind == "causal")
