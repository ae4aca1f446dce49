"""What a GGUF file says, and what is assumed where it does not: whether texts begin with a BOS."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from ensue.backends.hf.gguf import bos_facts


def write_gguf(path: Path, **fields: str | bool) -> Path:
    """A GGUF file of nothing but what it says about its tokenizer."""
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in fields.items():
        key = f"tokenizer.ggml.{name}"
        if isinstance(value, bool):
            writer.add_bool(key, value)
        else:
            writer.add_string(key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        # As llama.cpp has it: SentencePiece and WordPiece do, byte-level tokenizers only of some kinds.
        ({"model": "llama"}, True),
        ({"model": "bert"}, True),
        ({"model": "gpt2", "pre": "llama-bpe"}, True),
        ({"model": "gpt2", "pre": "tekken"}, True),
        ({"model": "gpt2", "pre": "qwen2"}, False),
        ({"model": "gpt2", "pre": "smollm"}, False),
        ({"model": "gpt2"}, False),
        ({"model": "t5"}, False),
        ({"model": "rwkv"}, False),
        ({}, False),
    ],
)
def test_a_file_that_does_not_say_is_taken_as_llama_cpp_takes_it(tmp_path: Path, fields, needs) -> None:
    facts = bos_facts(write_gguf(tmp_path / "a.gguf", **fields))
    assert facts["needs_bos"] is needs
    assert "does not say whether texts begin with a BOS" in facts["note"]
    assert facts["note"].endswith("they do" if needs else "they do not")
    assert fields.get("model", "unnamed") in facts["note"]


@pytest.mark.parametrize("stated", [True, False])
def test_what_a_file_says_goes_before_its_tokenizer(tmp_path: Path, stated: bool) -> None:
    for model in ("llama", "gpt2"):
        path = write_gguf(tmp_path / f"{model}.gguf", model=model, add_bos_token=stated)
        assert bos_facts(path) == {"needs_bos": stated}
