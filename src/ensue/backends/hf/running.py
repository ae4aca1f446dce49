"""How a model is run on its device: how many tokens at once, and in the way that an earlier probe found right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from ensue import scoring
from ensue.atomic import write_atomic
from ensue.backends.hf.loading import Loaded
from ensue.errors import EnsueError
from ensue.fetch.store import home
from ensue.scoring.plan import Budget
from ensue.version import __version__

_CPU_CACHE_BYTES = 384 * 2**20
_GPU_CACHE_SHARE = 0.25
# Tokens in one pass on a GPU, if so many activations (each as wide as the widest layer) fit this share of its memory.
# Half as many of twice this width keep it as busy, and the last row of a run, which is filled up, costs half as much.
_GPU_BATCH, _GPU_WIDTH = 65_536, 7168
_GPU_RUN_SHARE = 0.25
_GPU_WIDE = 6
# The widest activations of one long row on a CPU.
_CPU_RUN_BYTES = 256 * 2**20
_LONGEST_RUN = 8192


def default_budget(network: Any, batch_tokens: int | None) -> Budget:
    """Return a budget for a model on its device; `batch_tokens` overrides the tokens in one pass.

    On a CPU a few hundred tokens already keep the cores busy, and more only costs memory; a GPU wants
    tens of thousands.
    """
    import torch

    per_token = _cache_bytes_per_token(network)
    if network.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(network.device)
        wide = _widest_bytes_per_token(network)
        room = int(free * _GPU_RUN_SHARE / (_GPU_WIDE * wide))
        busy = _GPU_BATCH * _GPU_WIDTH * network.dtype.itemsize // wide
        batch = batch_tokens or max(min(_GPU_BATCH, busy // 2048 * 2048, room // 2048 * 2048), 2048)
        cache = int(free * _GPU_CACHE_SHARE / per_token)
        return Budget(batch=batch, full=batch // 2, cache=max(cache, batch), attended=batch * 24)
    batch = batch_tokens or 1024
    cache = max(int(_CPU_CACHE_BYTES / per_token), batch)
    run = 0 if batch_tokens else min(_LONGEST_RUN, _CPU_RUN_BYTES // _widest_bytes_per_token(network))
    return Budget(batch=batch, full=min(256, batch), cache=cache, attended=batch * 16, run=run)


def _widest_bytes_per_token(network: Any) -> int:
    """Return bytes of one token in the widest layer, as far as the configuration says."""
    config = network.config
    hidden = getattr(config, "hidden_size", None) or 1024
    inner = getattr(config, "intermediate_size", None) or getattr(config, "n_inner", None) or 4 * hidden
    return int(inner) * int(network.dtype.itemsize)


def _cache_bytes_per_token(network: Any) -> int:
    """Return bytes of keys and values of one token over all layers, as far as the configuration says."""
    config = network.config
    layers = getattr(config, "num_hidden_layers", 24)
    heads = getattr(config, "num_attention_heads", 16)
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    width = getattr(config, "head_dim", None) or getattr(config, "hidden_size", 1024) // max(heads, 1)
    size = network.dtype.itemsize
    return max(int(layers * 2 * kv_heads * width * size), 1)


Way = TypeVar("Way", bound=tuple[Any, ...])


def known_way(loaded: Loaded, kind: type[Way], find: Callable[[], Way]) -> Way:
    """Return how a model is run, from an earlier probe with the same weights, code and device; else probe now.

    Code that comes with a model is no part of its fingerprint, so such a model is probed every time.
    """
    if loaded.options.trust_remote_code:
        return find()
    path = home() / "probes" / f"{_key(loaded, kind)}.json"
    kept = _read(path, kind)
    if kept is not None:
        return kept
    found = find()
    # A folder that cannot be written costs only the time of the next probe.
    with suppress(EnsueError):
        write_atomic(path, [json.dumps(found._asdict()) + "\n"], make_folder=True)  # type: ignore[attr-defined]
    return found


def _read(path: Path, kind: type[Way]) -> Way | None:
    """Return a verdict as it was written; anything else is as good as none."""
    try:
        found = kind(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return found if all(isinstance(value, bool) for value in found) else None


def _key(loaded: Loaded, kind: type[tuple[Any, ...]]) -> str:
    """Return a digest of everything a verdict may depend on."""
    import torch

    network = loaded.network
    device = network.device
    facts = {
        "kind": kind.__name__,
        "model": [type(network).__name__, loaded.card.identity],
        "attention": str(getattr(network.config, "_attn_implementation", None)),
        "dtype": str(network.dtype),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "versions": [__version__, metadata.version("torch"), metadata.version("transformers")],
        "code": _code(),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


@cache
def _code() -> str:
    """Return a digest of the code that runs models: between two releases a version says nothing of it."""
    digest = hashlib.sha256()
    for folder in (Path(scoring.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
