"""What a head is trained on: an encoder or language model loaded for training, and its trunk made trainable."""

from __future__ import annotations

from typing import Any

from ensue.backends.hf.encoder import VectorModel
from ensue.backends.names import load_model
from ensue.errors import EnsueError


def load_base(model: str, trained: str) -> Any:
    """Load the model that something is trained from, in float32; refuse one without a network of its own."""
    base = load_model(model, device="cpu", dtype="float32")
    if not isinstance(base, VectorModel):
        raise EnsueError(
            f"{model} is no Hugging Face encoder or language model, which {trained} is trained from."
        )
    return base


def trainable_trunk(base: Any) -> Any:
    """Return the network below the head with every weight to be trained but the pooler's, which nothing reads."""
    trunk = base.network.base_model.requires_grad_(True)
    for name, parameter in trunk.named_parameters():
        if "pooler" in name:
            parameter.requires_grad_(False)
    return trunk
