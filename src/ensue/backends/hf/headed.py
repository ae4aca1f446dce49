"""Encoders with one output that were trained, as folders: whole, or as an adapter and a head on another model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ensue.atomic import make_readable, replacing
from ensue.backends.hf.adapter import AdapterShape, adapted_identity, open_adapter, save_adapter
from ensue.backends.hf.loading import Loaded, ModelFolder, load, write_config
from ensue.jsonl import read_object

HEAD = "head.safetensors"


class HeadedNetwork(nn.Module):  # type: ignore[misc]
    """An encoder and one output; the names of its weights are those of the network that is trained."""

    def __init__(self, trunk: Any, width: int = 0) -> None:
        super().__init__()
        self.trunk = trunk
        self.classifier = nn.Linear(width or int(trunk.config.hidden_size), 1)

    def fill_head(self, tensors: Mapping[str, Tensor]) -> None:
        """Put saved weights into all but the encoder; ValueError where they do not fit."""
        own = _head(self)
        if own.keys() != tensors.keys() or any(own[name].shape != tensors[name].shape for name in own):
            raise ValueError(f"{HEAD} is not that of this network")
        with torch.no_grad():
            for name, value in own.items():
                value.copy_(tensors[name])


def _head(network: Any) -> dict[str, Tensor]:
    return {
        name.removeprefix("classifier."): value
        for name, value in network.named_parameters()
        if not name.startswith("trunk.")
    }


def head_of(network: Any) -> dict[str, Tensor]:
    """Return a copy of all weights but the encoder's; those of the output go by their own names."""
    return {name: value.detach().float().cpu().clone() for name, value in _head(network).items()}


class Headed:
    """How a kind of such models is called: by `config.json`, in a card, and in messages; and how its network is made
    of an encoder and the configuration."""

    def __init__(
        self,
        architecture: str,
        kind: str,
        what: str,
        network: Callable[[Any, Mapping[str, Any]], HeadedNetwork] = lambda trunk, _: HeadedNetwork(trunk),
    ) -> None:
        self.architecture, self.kind, self.what, self.network = architecture, kind, what, network

    def load(self, folder: ModelFolder) -> tuple[Loaded, dict[str, Tensor]]:
        """Load the encoder and the head of one that was saved whole, or as an adapter."""
        if "base" in folder.config:
            return self._adapted(folder)
        loaded = load(folder, "AutoModel", self.kind)
        with folder.loading(self.what):
            return loaded, load_file(folder.path / HEAD)

    def _adapted(self, folder: ModelFolder) -> tuple[Loaded, dict[str, Tensor]]:
        base, network = open_adapter(
            folder,
            self.what,
            lambda base: self.network(base.network.base_model.requires_grad_(False), folder.config),
            lambda network: network.trunk,
        )
        card = folder.card(self.kind, adapted_identity(folder, base), licence=base.card.licence)
        head = head_of(network)
        return Loaded(folder.placed(network.trunk), base.tokenizer, card, folder.options), head

    def save(
        self,
        folder: Path,
        network: Any,
        tokenizer: Any,
        reading: Mapping[str, Any],
        *,
        base: str,
        fingerprint: str,
        shape: AdapterShape | None,
    ) -> None:
        """Save one that was trained: whole, or as an adapter of a shape and a head."""
        if shape is None:
            self.save_whole(folder, network, tokenizer, reading)
        else:
            self.save_adapted(folder, network, reading, base=base, fingerprint=fingerprint, shape=shape)

    def save_whole(self, folder: Path, network: Any, tokenizer: Any, reading: Mapping[str, Any]) -> None:
        """Save one whose encoder was trained whole, as a folder that needs nothing else."""
        folder.mkdir(parents=True, exist_ok=True)
        network.trunk.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        with replacing(folder / HEAD) as part:
            save_file(head_of(network), part)
        make_readable(folder)
        config = read_object(folder / "config.json")
        write_config(folder, {**config, "architectures": [self.architecture], self.kind: dict(reading)})

    def save_adapted(
        self,
        folder: Path,
        network: Any,
        reading: Mapping[str, Any],
        *,
        base: str,
        fingerprint: str,
        shape: AdapterShape,
    ) -> None:
        """Save one as an adapter and a head, which need the model they were trained on."""
        save_adapter(
            folder,
            network,
            architecture=self.architecture,
            base=base,
            fingerprint=fingerprint,
            shape=shape,
            more={self.kind: dict(reading)},
        )
