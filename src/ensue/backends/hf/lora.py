"""Low-rank adapters: linear layers that learn a small correction, which can be merged into the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ensue.errors import EnsueError


class LoraLinear(nn.Module):  # type: ignore[misc]
    """A linear layer with its own weights fixed, plus `scale · up · down` that learns; it begins as the layer was."""

    def __init__(self, layer: nn.Linear, rank: int, alpha: float, dropout: float) -> None:
        super().__init__()
        self.layer, self.scale = layer, alpha / rank
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        weight = layer.weight
        self.down = nn.Parameter(weight.new_empty((rank, layer.in_features)))
        self.up = nn.Parameter(weight.new_zeros((layer.out_features, rank)))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, states: Tensor) -> Tensor:
        low = nn.functional.linear(self.dropout(states), self.down)
        out: Tensor = self.layer(states) + self.scale * nn.functional.linear(low, self.up)
        return out

    def merged(self) -> nn.Linear:
        """Return the plain layer that does the same."""
        with torch.no_grad():
            change = self.scale * self.up.float() @ self.down.float()
            self.layer.weight += change.to(self.layer.weight.dtype)
        return self.layer


def add_lora(
    network: nn.Module, *, rank: int, alpha: float, dropout: float = 0.0, targets: Sequence[str] = ()
) -> list[str]:
    """Put an adapter on every linear layer, or on those whose name is or ends with one of `targets`; their names.

    A pooler's layer is left alone: nothing here reads its output.
    """
    names = [
        name
        for name, layer in network.named_modules()
        if isinstance(layer, nn.Linear)
        and "pooler" not in name
        and (not targets or any(name == target or name.endswith(f".{target}") for target in targets))
    ]
    if not names:
        known = sorted(
            {name.rpartition(".")[2] for name, m in network.named_modules() if isinstance(m, nn.Linear)}
        )
        raise EnsueError(f"No layer to adapt is called {', '.join(targets)}; there are {', '.join(known)}.")
    for name in names:
        parent, last = _place(network, name)
        setattr(parent, last, LoraLinear(getattr(parent, last), rank, alpha, dropout))
    return names


def fill_learned(network: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Put saved weights into all that learns of a network, and nothing else; ValueError if they do not fit."""
    learned = {name: value for name, value in network.named_parameters() if value.requires_grad}
    if wrong := sorted(learned.keys() ^ tensors.keys()):
        raise ValueError(f"{wrong[0]} is {'missing' if wrong[0] in learned else 'not of this adapter'}")
    with torch.no_grad():
        for name, value in learned.items():
            if value.shape != tensors[name].shape:
                raise ValueError(
                    f"{name} has the shape {tuple(tensors[name].shape)}, not {tuple(value.shape)}"
                )
            value.copy_(tensors[name])


def merge_lora(network: nn.Module) -> None:
    """Merge every adapter into the layer it stands on, which is then as fast as before."""
    for name, layer in list(network.named_modules()):
        if isinstance(layer, LoraLinear):
            parent, last = _place(network, name)
            setattr(parent, last, layer.merged())


def _place(network: nn.Module, name: str) -> tuple[Any, str]:
    parent, _, last = name.rpartition(".")
    return network.get_submodule(parent), last
