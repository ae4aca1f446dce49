"""Training a model with one output: its base loaded, its network made to learn, saved and recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from ensue.backends.hf.adapter import adapt, base_fingerprint
from ensue.backends.hf.encoder import VectorModel
from ensue.backends.hf.headed import Headed
from ensue.backends.names import load_model
from ensue.errors import EnsueError
from ensue.models.card import write_card_facts
from ensue.train.documents import DocumentOptions
from ensue.train.finetune.network import freeze_pooler
from ensue.train.options import LoopSettings
from ensue.train.run import parameters_of


def load_base(model: str, trained: str) -> Any:
    """Load the model that something is trained from, in float32; refuse one without a network of its own."""
    base = load_model(model, device="cpu", dtype="float32")
    if not isinstance(base, VectorModel):
        raise EnsueError(
            f"{model} is not a Hugging Face encoder or language model, which {trained} is trained from."
        )
    return base


class Learned:
    """A network with one output that learns: with all of its base, or with an adapter on it."""

    def __init__(
        self,
        kind: Headed,
        options: DocumentOptions,
        base: Any,
        reading: Any,
        build: Callable[[Any], nn.Module],
        device: torch.device,
    ) -> None:
        """`build` makes the network of the base's trunk; `reading` is the dataclass of how it reads texts."""
        self._kind, self._options, self._base, self._reading = kind, options, base, reading
        self._fingerprint = base_fingerprint(base.network)
        torch.manual_seed(options.seed)
        trunk = base.network.base_model.requires_grad_(True)
        freeze_pooler(trunk)
        self.network: Any = build(trunk).to(device)
        if options.adapter is not None:
            adapt(trunk, options.adapter)
            self.network.to(device)

    def loop(self, batches: int, processes: int) -> LoopSettings:
        """Return how the loop trains it, with so many batches an epoch."""
        return self._options.counted_for(int(self.network.trunk.config.hidden_size), batches, processes)

    def save(self, **facts: Any) -> None:
        """Save it in the output, with further facts of its card."""
        options = self._options
        self._kind.save(
            options.output,
            self.network,
            self._base.tokenizer,
            asdict(self._reading),
            base=options.base,
            fingerprint=self._fingerprint,
            shape=options.adapter,
        )
        write_card_facts(options.output, licence=self._base.card.licence, **facts)

    def facts(self, loop: LoopSettings) -> dict[str, Any]:
        """Return what the record says of it."""
        return {
            "reading": asdict(self._reading),
            "learning_rate": loop.learning_rate,
            "base": self._base.card.as_dict(),
            **parameters_of(self.network),
        }
