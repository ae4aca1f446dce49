"""A NaN or an infinity is refused by name wherever a model makes one: vectors, generated tokens, questions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from ensue.backends.hf.encoder import VectorModel
from ensue.backends.hf.loading import Loaded
from ensue.backends.names import load_model
from ensue.errors import RunFailed
from ensue.models.card import ModelCard
from ensue.models.protocols import AnswerSpan
from ensue.scoring.finite import check_rows, not_finite, watched
from tests.support import tiny, tiny_seq2seq

GOOD, BAD = "She opened the old letter and read it.", "Nobody had expected ñ, a dog."
SPANS = [AnswerSpan(0, 3), AnswerSpan(0, 6)]


def poisoned(model: Any) -> Any:
    """The model with infinite vectors for the tokens that only the bad text has."""
    # Letters of other texts are in the prompts of all, but a tokenizer that drops accents knows no ñ.
    odd = "dog" if model.card.kind == "encoder" else "ñ"
    good, bad = (set(model.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in (GOOD, odd))
    if model.network.get_output_embeddings() is not None:
        head = model.network.get_output_embeddings()
        head.weight = torch.nn.Parameter(head.weight.clone(), requires_grad=False)
    model.network.get_input_embeddings().weight[sorted(bad - good)] = torch.inf
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("models")
    saved = {
        "encoder": tiny.save_encoder(folder / "encoder"),
        "llama": tiny.save_llama(folder / "llama", max_length=1024),
        "bart": tiny_seq2seq.save_bart(folder / "bart"),
    }
    loaded = {name: load_model(str(path), dtype="float16") for name, path in saved.items()}
    loaded["llama"].executor  # type: ignore[attr-defined]  # noqa: B018 (probed before the fault is there)
    return {name: poisoned(model) for name, model in loaded.items()}


CALLS: dict[str, tuple[str, Callable[[Any, list[str]], Any]]] = {
    "vectors": ("encoder", lambda model, texts: model.encode(texts)),
    "vectors of layers": ("encoder", lambda model, texts: model.encode(texts, layers=[0, 2], pooling="cls")),
    "vectors of tokens": ("encoder", lambda model, texts: model.encode_tokens(texts)),
    "greedy": ("llama", lambda model, texts: model.generate(texts, max_tokens=3)),
    "beams": ("llama", lambda model, texts: model.generate(texts, max_tokens=3, beams=2)),
    "asked": (
        "llama",
        lambda model, texts: model.ask(
            texts, SPANS[: len(texts)], count=1, beams=2, min_tokens=1, max_tokens=3
        ),
    ),
    "questions": (
        "llama",
        lambda model, texts: model._questioner.question_logprobs(
            texts, SPANS[: len(texts)], ["Who?"] * len(texts)
        ),
    ),
    "from text": ("bart", lambda model, texts: model.generate(texts, max_tokens=3)),
    "asked from text": (
        "bart",
        lambda model, texts: model.ask(
            texts, SPANS[: len(texts)], count=1, beams=2, min_tokens=1, max_tokens=3
        ),
    ),
    "questions from text": (
        "bart",
        lambda model, texts: model.question_logprobs(texts, SPANS[: len(texts)], ["Who?"] * len(texts)),
    ),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_text_and_the_dtype_are_named(models: dict[str, Any], call: str) -> None:
    name, work = CALLS[call]
    model = models[name]
    if call not in ("vectors of layers",):
        work(model, [GOOD])
    with pytest.raises(RunFailed) as raised:
        work(model, [GOOD, BAD])
    words = str(raised.value)
    assert "in float16" in words
    assert "--dtype bfloat16 or float32" in words
    assert name in words
    if call not in ("asked", "questions", "asked from text", "questions from text"):
        assert BAD[:15] in words  # else the text stands after words that all prompts begin with


def test_an_encoder_that_takes_padding_for_text_gets_none() -> None:
    torch.manual_seed(5)
    tokenizer = tiny._fast_bert(tiny._word_piece())
    config = transformers.FNetConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, intermediate_size=48
    )
    model = transformers.FNetModel(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)
    card = type("Card", (), {"max_length": 64, "name": "fnet", "identity": {}})()
    loaded = Loaded(model, tokenizer, card, None)  # type: ignore[arg-type]
    texts = [GOOD, "A dog.", BAD, "A dog.", "The sun rose."]
    together = VectorModel(loaded).encode(texts)
    for text, vector in zip(texts, together, strict=True):
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        np.testing.assert_allclose(vector, model(ids)[0][0].mean(0).numpy(), atol=1e-4)


CARD = ModelCard("some-model", "encoder", "-", identity={"dtype": "float16"})
OVERFLOW = "float16 overflows beyond 65,504, so use --dtype bfloat16 or float32"


@pytest.mark.parametrize(
    ("dtype", "kind", "advice"),
    [
        ("float16", " in float16", OVERFLOW),
        ("bfloat16", " in bfloat16", "use --dtype float32"),
        (
            "float32",
            " in float32",
            "the weights may be damaged, or one of its tokens impossible for the model",
        ),
        (
            "float64",
            " in float64",
            "the weights may be damaged, or one of its tokens impossible for the model",
        ),
        (
            None,
            "",
            "see with which dtype the server runs it (bfloat16 holds larger numbers than float16)",
        ),
    ],
)
def test_each_dtype_has_its_way_out(dtype: str | None, kind: str, advice: str) -> None:
    found = not_finite(float("-inf"), model="some-model", dtype=dtype, what="a text")
    assert (
        str(found)
        == f"some-model makes -inf of a text{kind}, which cannot be compared with anything; {advice}."
    )


def test_the_first_text_with_a_number_that_is_none_is_named() -> None:
    rows = [[1.0, 2.0], [[0.0, 1.0], [np.nan, np.inf]], [np.nan]]
    texts = ["one", "two, which is longer than the forty letters that are shown", "three"]
    check_rows(rows[:1], texts[:1], CARD)
    with pytest.raises(RunFailed) as raised:
        check_rows(rows, texts, CARD)
    assert str(raised.value) == (
        "some-model makes nan of the text that begins 'two, which is longer than the forty lett' in float16, "
        f"which cannot be compared with anything; {OVERFLOW}."
    )
    with pytest.raises(RunFailed, match=r"makes inf of .*begins 'one' in float16"):
        check_rows([[np.inf, np.nan]], ["one"], CARD)
    with pytest.raises(RunFailed, match=r"begins 'one', which .*the server"):
        check_rows([[np.nan]], ["one"], replace(CARD, identity={}))
    with pytest.raises(ValueError, match="zip"):
        check_rows(rows[:1], texts[:2], CARD)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_row_of_logits_belongs_to_the_text_of_its_beams(beams: int) -> None:
    texts = ["one", "two", "three"]
    check = watched(texts, "some-model", torch.float16)
    good = torch.zeros(3 * beams, 4)
    good[:, 1] = -torch.inf  # a token that is ruled out
    assert check(None, good) is good
    for row in range(3 * beams):
        for bad, said in ((torch.nan, "nan"), (torch.inf, "inf")):
            scores = good.clone()
            scores[row:, 2] = bad
            with pytest.raises(RunFailed) as raised:
                check(None, scores)
            assert str(raised.value) == (
                f"some-model makes {said} of the text that begins '{texts[row // beams]}' in float16, "
                f"which cannot be compared with anything; {OVERFLOW}."
            )
