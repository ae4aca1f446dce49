"""Vectors of tokens against one text at a time through the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.protocols import Generator, TokenEncoder, require
from tests.support import tiny

TEXTS = [tiny.SENTENCES[0], "A dog.", "", " ".join(tiny.SENTENCES), tiny.SENTENCES[5], "A dog."]


@pytest.fixture(scope="module", params=["encoder", "bert", "roberta", "llama"])
def model(request, tmp_path_factory) -> TokenEncoder:
    folder: Path = tmp_path_factory.mktemp("models") / request.param
    return load_model(str(getattr(tiny, f"save_{request.param}")(folder)))


def naive(model, text: str, layer: int) -> tuple[list[int], np.ndarray]:
    # To a RoBERTa a text begins as a word within a sentence does.
    text = " " + text if text and "Roberta" in type(model.tokenizer).__name__ else text
    ids = model.tokenizer(text, truncation=True, max_length=model.card.max_length)["input_ids"]
    if not ids:
        return [], np.zeros((0, 32), np.float32)
    with torch.inference_mode():
        states = model.network.base_model(torch.tensor([ids]), output_hidden_states=True).hidden_states[
            layer
        ][0]
    return ids, states.numpy()


@pytest.mark.parametrize("layer", [None, 0, 1, -1])
def test_every_token_in_order_and_which_are_special(model, layer) -> None:
    found, tokens = model.encode_tokens(TEXTS, layer), model.text_tokens(TEXTS)
    assert [one.dtype for one in found] == [np.dtype(np.float32)] * len(TEXTS)
    special = set(model.tokenizer.all_special_ids) - {model.tokenizer.unk_token_id}
    for text, vectors, one in zip(TEXTS, found, tokens, strict=True):
        expected_ids, expected = naive(model, text, -1 if layer is None else layer)
        assert one.ids == expected_ids
        assert one.special == [token in special for token in expected_ids]
        assert vectors.shape == (len(one.ids), 32)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert len(found[3]) > 60
    assert all(tokens[2].special)


def test_space_around_a_text_is_no_part_of_it(model) -> None:
    one, two = model.text_tokens([" A dog.\n", "A dog."])
    assert one == two
    assert model.text_tokens([" \n"]) == model.text_tokens([""])


def test_what_there_is_not(model) -> None:
    assert model.encode_tokens([]) == model.text_tokens([]) == []
    with pytest.raises(EnsueError, match=r"has layers 0 \(the embedding\) to 2, and no layer 3"):
        model.encode_tokens(TEXTS, 3)


def test_it_is_asked_for_by_name(model) -> None:
    assert require(model, TokenEncoder, "BERTScore") is model
    with pytest.raises(
        EnsueError, match="BERTScore needs a model that can give vectors of tokens, but random can"
    ):
        require(load_model("random"), TokenEncoder, "BERTScore")
    assert isinstance(model, Generator) == (model.card.kind == "causal")
