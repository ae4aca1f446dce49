"""What is known about a model: where it comes from, its fingerprint, and what it was trained on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from ensue.atomic import write_atomic
from ensue.jsonl import read_object

CARD_FILE = "ensue-card.json"


@dataclass(frozen=True)
class ModelCard:
    """The facts that travel with a model.

    `identity` holds everything about the model that changes a score (weights, tokenizer, dtype, revision);
    two models with equal identities give equal scores. `generation` is a digest of what its folder says of generating
    text, which changes what it writes and no score. `name` is what people call it; `weights_name` is what the weights
    are, where a short name says less; `note` is what had to be assumed about it. `package` is the digest of what the
    weights were fetched in. `following` holds what its folder states of texts that follow: calibrations by the
    fingerprint of the model, then by that of the encoder they were made with (`ensue calibrate`).
    """

    name: str
    kind: str
    source: str
    identity: dict[str, str] = field(default_factory=dict)
    licence: str = "unknown"
    max_length: int | None = None
    needs_bos: bool = False
    trained_on_shuffled_text: bool = False
    training: str = ""
    generation: str = ""
    weights_name: str = ""
    note: str = ""
    package: str = ""
    following: dict[str, Any] = field(default_factory=dict)

    @property
    def signed_name(self) -> str:
        """Its name in a signature, one word, with what the weights are where the name does not say it.

        >>> ModelCard("smollm2", "causal", "-", weights_name="SmolLM2-135M-Instruct-Q4_1").signed_name
        'smollm2(SmolLM2-135M-Instruct-Q4_1)'
        """
        words = f"{self.name}({self.weights_name})" if self.weights_name else self.name
        return "-".join(words.split())

    @property
    def mark(self) -> str:
        """What tells its weights from others' in a signature: an adapter's, rather than those it stands on."""
        return (self.identity.get("adapter") or self.identity.get("weights", "-"))[:12]

    @property
    def marked_name(self) -> str:
        """Its name and its weights: a name alone may be another model's tomorrow."""
        return f"{self.name}/{self.mark}"

    @property
    def fingerprint(self) -> str:
        """What tells its weights from all others': a digest of the package they came in, or of themselves.

        The weights of a converted file are written anew by each version of transformers; the package stays the same.
        """
        found = self.package or self.identity.get("adapter") or self.identity.get("weights")
        return found or hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return all but the calibrations, which are long and change no score."""
        facts = asdict(self)
        del facts["following"]
        return facts


# What a folder may state about itself: all but what is found out about it.
_FACTS = {fact.name for fact in fields(ModelCard)} - {"name", "kind", "identity", "generation", "package"}


def read_card_facts(folder: Path) -> dict[str, Any]:
    """Read the facts a model folder states about itself in `ensue-card.json`; none if it has no such file."""
    path = folder / CARD_FILE
    if not path.is_file():
        return {}
    return {key: value for key, value in read_object(path).items() if key in _FACTS}


def write_card_facts(folder: Path, **facts: Any) -> None:
    """State facts about a model in its folder, as training code does when it saves what it trained."""
    path = folder / CARD_FILE
    merged = {**(read_object(path) if path.is_file() else {}), **facts}
    write_atomic(path, [json.dumps(merged, indent=2, sort_keys=True) + "\n"])
