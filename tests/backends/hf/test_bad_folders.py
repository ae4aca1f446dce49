"""Model folders that cannot be used, and requests that do not suit a model: one sentence each, exit code 2."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support import tiny
from tests.support.command import here, refused, write_lines

GOOD = "The sun rose. The birds sang. Nobody spoke. The rain stopped. They ran out."


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> Path:
    return tiny.save_llama(tmp_path_factory.mktemp("models") / "llama", max_length=32)


@pytest.fixture
def copy(llama, tmp_path) -> Path:
    return Path(shutil.copytree(llama, tmp_path / "copy"))


@pytest.fixture
def text(tmp_path) -> Path:
    return write_lines(tmp_path / "news.jsonl", [{"text": GOOD}])


def test_a_model_folder_without_a_tokenizer(copy, text):
    for path in copy.glob("tokenizer*"):
        path.unlink()
    refused(here("score", text, "--model", copy), str(copy), "no tokenizer")


def test_a_model_folder_without_weights(copy, text):
    (copy / "model.safetensors").unlink()
    refused(here("score", text, "--model", copy), str(copy), "no weights")


def test_a_model_folder_without_a_config(copy, text):
    (copy / "config.json").unlink()
    refused(here("score", text, "--model", copy), str(copy), "no config.json")


def test_pickled_weights_are_refused_until_they_are_allowed(copy, text):
    import torch
    from safetensors.torch import load_file

    safe = here("score", text, "--model", copy, "--json").out
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    refused(here("score", text, "--model", copy), "pytorch_model.bin", "--allow-pickle")
    allowed = here("score", text, "--model", copy, "--allow-pickle", "--json")
    assert (allowed.code, allowed.out) == (0, safe)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"architectures": [', ["config.json", "is not JSON"]),
        ("[1]", ["config.json", "is not a JSON object"]),
        ('{"model_type": "llama"}', ["config.json", "no architecture"]),
        ('{"model_type": "frob", "architectures": ["FrobForCausalLM"]}', ["copy cannot be loaded", "frob"]),
    ],
)
def test_a_broken_config(copy, text, content, words):
    (copy / "config.json").write_text(content)
    refused(here("score", text, "--model", copy), *words)


def test_a_config_with_a_value_of_the_wrong_kind(copy, text):
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"hidden_size": 32', '"hidden_size": "many"'))
    refused(here("score", text, "--model", copy), "copy cannot be loaded", "hidden_size")


@pytest.mark.parametrize("keep", [0, 100, 3000])
def test_weights_cut_short(copy, text, keep):
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    refused(here("score", text, "--model", copy), "copy cannot be loaded")


def test_weights_that_are_no_weights(copy, text):
    (copy / "model.safetensors").write_bytes(b"\xff" * 4096)
    refused(here("score", text, "--model", copy), "copy cannot be loaded")


def test_a_broken_tokenizer(copy, text):
    (copy / "tokenizer.json").write_text('{"version": "1.0"')
    refused(here("score", text, "--model", copy), "copy cannot be loaded")


def test_weights_that_are_missing_are_not_made_up(copy, text):
    config = copy / "config.json"
    config.write_text(config.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 3'))
    refused(here("score", text, "--model", copy), "copy lacks weights", "layers.2")


def test_a_head_that_is_missing_is_not_made_up(tmp_path, text):
    folder = tiny.save_encoder(tmp_path / "encoder")
    config = folder / "config.json"
    config.write_text(config.read_text().replace("BertModel", "BertForMaskedLM"))
    refused(here("score", text, "--model", folder), "encoder lacks weights", "cls.predictions")


def test_a_broken_model_card(copy, text):
    (copy / "ensue-card.json").write_text("{")
    refused(here("score", text, "--model", copy), "ensue-card.json", "is not JSON")


def test_a_context_longer_than_the_model_is_refused_until_it_may_be_cut(llama, tmp_path):
    rows = [{"context": GOOD * 3, "continuation": " The end."}]
    path = write_lines(tmp_path / "pairs.jsonl", rows)
    refused(here("score", path, "--model", llama), "do not fit", "32", "overflow=truncate")
    allowed = here("score", path, "--model", llama, "--set", "overflow=truncate", "--json")
    assert allowed.code == 0
    assert "context truncated: 1" in allowed.err


def test_a_text_longer_than_the_model_is_refused_if_it_is_to_be(llama, text):
    refused(
        here("score", text, "--model", llama, "--set", "window=refuse"),
        "longer than the 32",
        "another window",
    )


def test_settings_that_do_not_suit_the_model(llama, text):
    refused(here("score", text, "--model", llama, "--set", "max_length=500"), "max_length 500", "32")
    refused(here("score", text, "--model", llama, "--set", "masked=within-word"), "masked=within-word")
    refused(here("score", text, "--model", llama, "--dtype", "float8"), "float8", "bfloat16")
    refused(here("score", text, "--model", llama, "--device", "abacus"), "abacus")


def test_an_encoder_cannot_take_the_shuffle_test_and_the_folder_can_be_used_again(tmp_path, text, llama):
    folder, output = tiny.save_encoder(tmp_path / "encoder"), tmp_path / "run"
    command = ("run", "shuffle", "--data", text, "--output", output, "--model")
    refused(here(*command, folder), "Shuffle Test", "score text", "encoder can only encode text")
    assert not (output / "results.json").exists()
    assert here(*command, llama).code == 0
