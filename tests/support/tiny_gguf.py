"""A tiny Llama folder as a GGUF file, and llama.cpp's own server of it in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def write_gguf(folder: Path, path: Path) -> Path:
    """Write the Llama of a folder, with its byte-level tokenizer, in full precision."""
    import gguf
    import numpy as np
    from safetensors.numpy import load_file

    config = json.loads((folder / "config.json").read_text())
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    heads, width = config["num_attention_heads"], config["hidden_size"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(width)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads", heads))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(config["vocab_size"])
    _add_tokenizer(writer, tokenizer, config)
    weights = load_file(folder / "model.safetensors")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, value in weights.items():
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            # llama.cpp turns neighbouring dimensions together, transformers those half a head apart.
            value = (
                value.reshape(heads, 2, value.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(value.shape)
            )
        writer.add_tensor(names.get_name(name, (".weight",)), np.ascontiguousarray(value, dtype=np.float32))
    if "lm_head.weight" not in weights:
        writer.add_tensor("output.weight", weights["model.embed_tokens.weight"].astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_tokenizer(writer: Any, tokenizer: dict[str, Any], config: dict[str, Any]) -> None:
    import gguf

    vocabulary = {**tokenizer["model"]["vocab"], **{t["content"]: t["id"] for t in tokenizer["added_tokens"]}}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    kinds = [gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL for token in tokens]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)


@contextmanager
def llama_server(path: Path) -> Iterator[str]:
    """llama.cpp's server of a file, in a process; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.tiny_gguf", str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        # llama.cpp writes to standard output, too.
        address = next(line for line in process.stdout if line.startswith("http"))
        yield address.strip()
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = 2048
    params.n_parallel = 2
    params.cpuparams.n_threads = 1
    params.warmup = False
    params.port = 0
    server = xllamacpp.Server(params)
    print(f"\n{server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
