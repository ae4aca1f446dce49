"""How many tokens a batch may hold, from the device's memory and the model's size."""

from __future__ import annotations

from typing import Any

from ensue.scoring.plan import Budget

_CPU_CACHE_BYTES = 384 * 2**20
_GPU_CACHE_SHARE = 0.25
# The widest activations of one long row on a CPU.
_CPU_RUN_BYTES = 256 * 2**20
_LONGEST_RUN = 8192


def default_budget(network: Any, batch_tokens: int | None) -> Budget:
    """A budget for a model on its device; `batch_tokens` overrides the tokens in one pass.

    On a CPU a few hundred tokens already keep the cores busy, and more only costs memory; a GPU wants
    tens of thousands.
    """
    import torch

    per_token = _cache_bytes_per_token(network)
    if network.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(network.device)
        batch = batch_tokens or 32_768
        cache = int(free * _GPU_CACHE_SHARE / per_token)
        return Budget(batch=batch, full=batch // 2, cache=max(cache, batch), attended=batch * 24)
    batch = batch_tokens or 1024
    cache = max(int(_CPU_CACHE_BYTES / per_token), batch)
    run = 0 if batch_tokens else min(_LONGEST_RUN, _CPU_RUN_BYTES // _widest_bytes_per_token(network))
    return Budget(batch=batch, full=min(256, batch), cache=cache, attended=batch * 16, run=run)


def _widest_bytes_per_token(network: Any) -> int:
    """Bytes of one token in the widest layer, as far as the configuration tells."""
    config = network.config
    hidden = getattr(config, "hidden_size", None) or 1024
    inner = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * hidden
    return int(inner) * int(network.dtype.itemsize)


def _cache_bytes_per_token(network: Any) -> int:
    """Bytes of keys and values of one token over all layers, as far as the configuration tells."""
    config = network.config
    layers = getattr(config, "num_hidden_layers", 24)
    heads = getattr(config, "num_attention_heads", 16)
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or getattr(config, "hidden_size", 1024) // max(heads, 1)
    size = network.dtype.itemsize
    return max(int(layers * 2 * kv_heads * width * size), 1)
