"""Tiny random-weight networks of many families, made once."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import transformers

VOCABULARY = 61
_SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_LLAMA = {**_SMALL, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 128}


def _config(family: str) -> Any:
    t = transformers
    return {
        "llama": lambda: t.LlamaConfig(**_LLAMA),
        "gpt2": lambda: t.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=128),
        # Local attention over 8 positions in half the layers.
        "gemma3": lambda: t.Gemma3TextConfig(
            **{**_LLAMA, "num_hidden_layers": 3}, head_dim=8, sliding_window=8
        ),
        # Soft-capped logits; linear position biases; scaled logits; a head that is not the trunk's sibling.
        "gemma2": lambda: t.Gemma2Config(**_LLAMA, head_dim=8, sliding_window=8),
        "bloom": lambda: t.BloomConfig(vocab_size=VOCABULARY, hidden_size=32, n_layer=2, n_head=4),
        "granite": lambda: t.GraniteConfig(**_LLAMA, logits_scaling=3.0),
        "opt": lambda: t.OPTConfig(**_SMALL, ffn_dim=48, word_embed_proj_dim=32, max_position_embeddings=128),
        # Recurrent: nothing to branch from.
        "mamba": lambda: t.MambaConfig(vocab_size=VOCABULARY, hidden_size=32, num_hidden_layers=2),
        "bert": lambda: t.BertConfig(**_SMALL, intermediate_size=48, max_position_embeddings=128),
        "roberta": lambda: t.RobertaConfig(
            **_SMALL, intermediate_size=48, max_position_embeddings=130, pad_token_id=1
        ),
    }[family]()


@cache
def network(family: str) -> Any:
    """A network in float32 whose weights are large enough that wrong masks and positions show."""
    transformers.logging.set_verbosity_error()
    torch.manual_seed(7)
    auto = (
        transformers.AutoModelForMaskedLM
        if family in ("bert", "roberta")
        else transformers.AutoModelForCausalLM
    )
    model = auto.from_config(_config(family)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)
    return model
