"""Keeps what a probe found out about a model, so that the next process need not find it out again."""

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
from ensue.version import __version__

Way = TypeVar("Way", bound=tuple[Any, ...])


def known_way(loaded: Loaded, kind: type[Way], find: Callable[[], Way]) -> Way:
    """How a model is run, from an earlier probe with the same weights, code and device; else probed now.

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
    """A verdict as it was written; anything else is as good as none."""
    try:
        stated = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    if not isinstance(stated, dict) or set(stated) != set(names):
        return None
    if not all(isinstance(value, bool) for value in stated.values()):
        return None
    return kind(**stated)


def _key(loaded: Loaded, kind: type[tuple[Any, ...]]) -> str:
    """A digest of everything a verdict may depend on."""
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
    """A digest of the code that runs models: between two releases a version says nothing of it."""
    digest = hashlib.sha256()
    for path in sorted(Path(scoring.__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
