"""Who answers at an address: what a server says of its model, and how the model behaves.

A server may be started anew with another model under the same name. What it lists about the model is taken where it
says something of the model; `created` and `permission` are left out, because vLLM and llama.cpp make them up anew for
every reply. Beyond that a model is known by the log-probabilities it gives a few short texts, or, where a server does
not tell those, by what it would write after them. These move a little with the server's batches, so a rounded value
could fall on either side of a border: instead they are kept, and the model is the one that gave them before as long
as none has moved by more than rounding does.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ensue.atomic import write_atomic
from ensue.errors import EnsueError
from ensue.fetch.store import home

_STATED = (
    "owned_by",
    "root",
    "parent",
    "max_model_len",
    "context_length",
    "digest",
    "fingerprint",
    "meta",
    "revision",
    "sha",
    "version",
)
# Two sentences of plain prose and one of what models differ in more: numbers and names.
PROBES = (
    "The sun rose over the hill, and the birds began to sing.",
    "She opened the letter twice before she said a word about it.",
    "In 1815 the Congress of Vienna redrew the map of Europe; 7 × 8 is 56.",
)
# Nats: one step of bfloat16 at logits between 16 and 32, where two batches of one model may differ.
_ROUNDING = 0.125
NOTHING = "-"


class Behaviour(NamedTuple):
    """The tokens a model makes of a text and their log-probabilities, None for one that it does not score."""

    tokens: tuple[str, ...]
    logprobs: tuple[float | None, ...]

    def is_like(self, other: Behaviour) -> bool:
        """Return whether both may be one model's, but for rounding."""
        if self.tokens != other.tokens:
            return False
        pairs = zip(self.logprobs, other.logprobs, strict=True)
        return all(a == b or (a is not None and b is not None and abs(a - b) <= _ROUNDING) for a, b in pairs)

    @property
    def name(self) -> str:
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]


def stated_digest(entry: Mapping[str, Any]) -> str:
    """Return a digest of what a server's list says of a model itself; `-` where that is nothing but its name."""
    facts = {key: entry[key] for key in _STATED if entry.get(key) is not None}
    if not facts:
        return NOTHING
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def known_behaviour(root: str, model: str, found: Behaviour) -> str:
    """Name how a model behaves: as at an earlier time it behaved so under this address, or anew."""
    if not all(x is None or math.isfinite(x) for x in found.logprobs):
        return NOTHING
    digest = hashlib.sha256(f"{root}#{model}".encode()).hexdigest()[:32]
    path = home() / "endpoints" / f"{digest}.json"
    seen = _read(path)
    for one in seen:
        if one.is_like(found):
            return one.name
    # A folder that cannot be written only means that rounding may make the model look like another.
    with suppress(EnsueError):
        write_atomic(path, [json.dumps([*seen, found]) + "\n"], make_folder=True)
    return found.name


def _read(path: Path) -> Sequence[Behaviour]:
    """Return the behaviours seen so far; a file that cannot be read is as good as none."""
    try:
        return [
            Behaviour(
                tuple(str(token) for token in tokens),
                tuple(None if x is None else float(x) for x in logprobs),
            )
            for tokens, logprobs in json.loads(path.read_bytes())
        ]
    except (OSError, ValueError, TypeError):
        return []
