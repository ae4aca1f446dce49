"""Vectors of tokens against one text at a time through the network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ensue.errors import EnsueError
from ensue.models import load_model
from ensue.models.protocols import Generator, TokenEncoder, require
from tests.support import tiny

TEXTS = [tiny.SENTENCES[0], "A dog.", "", " ".join(tiny.SENTENCES), tiny.SENTENCES[5], "A dog."]


@pytest.fixture(scope="module", params=["encoder", "bert", "roberta", "llama"])
def model(request, tmp_path_factory) -> TokenEncoder:
    folder: Path = tmp_path_factory.mktemp("models") / request.param
    return load_model(str(getattr(tiny, f"save_{request.param}")(folder)))


def naive(model, text: str, layer: int) -> tuple[list[int], np.ndarray]:
    ids = model.tokenizer(text, truncation=True, max_length=model.card.max_length)["input_ids"]
    special = set(model.tokenizer.all_special_ids)
    kept = [i for i, token in enumerate(ids) if token not in special or token == model.tokenizer.unk_token_id]
    if not ids:
        return [], np.zeros((0, 32), np.float32)
    with torch.inference_mode():
        states = model.network.base_model(torch.tensor([ids]), output_hidden_states=True).hidden_states[
            layer
        ][0]
    return [ids[i] for i in kept], states[kept].numpy()


@pytest.mark.parametrize("layer", [None, 0, 1, -1])
def test_every_token_but_special_ones_in_order(model, layer) -> None:
    found, ids = model.encode_tokens(TEXTS, layer), model.token_ids(TEXTS)
    assert [one.dtype for one in found] == [np.dtype(np.float32)] * len(TEXTS)
    for text, vectors, tokens in zip(TEXTS, found, ids, strict=True):
        expected_ids, expected = naive(model, text, -1 if layer is None else layer)
        assert tokens == expected_ids
        assert vectors.shape == (len(tokens), 32)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert len(found[3]) > 60
    assert len(found[2]) == 0


def test_what_there_is_not(model) -> None:
    assert model.encode_tokens([]) == model.token_ids([]) == []
    with pytest.raises(EnsueError, match=r"has layers 0 \(the embedding\) to 2, and no layer 3"):
        model.encode_tokens(TEXTS, 3)


def test_it_is_asked_for_by_name(model) -> None:
    assert require(model, TokenEncoder, "BERTScore") is model
    with pytest.raises(
        EnsueError, match="BERTScore needs a model that can give vectors of tokens, but random can"
    ):
        require(load_model("random"), TokenEncoder, "BERTScore")
    assert isinstance(model, Generator) == (model.card.kind == "causal")
