"""An encoder with a span head: for every token, how likely an answer begins and ends there."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ensue.backends.hf.adapter import AdapterShape, adapt
from ensue.backends.hf.lora import fill_learned, merge_lora


class SpanNetwork(nn.Module):  # type: ignore[misc]
    """Start and end scores from the last layer of an encoder.

    The head's weights are stored divided by `faster`, so that under Adam, whose steps have the size of the learning
    rate, the new head learns so many times as fast as the encoder.
    """

    def __init__(self, trunk: nn.Module, faster: float = 1.0) -> None:
        super().__init__()
        width = int(trunk.config.hidden_size)
        self.trunk, self.faster = trunk, faster
        self.weight = nn.Parameter(torch.randn(2, width) * 0.02 / faster)
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **more: Tensor) -> Tensor:
        """Return rows × tokens × 2, always in float32: spans are compared by small differences."""
        states = self.trunk(input_ids=input_ids, attention_mask=attention_mask, **more)[0]
        with torch.autocast(states.device.type, enabled=False):
            scores: Tensor = nn.functional.linear(
                states.float(), self.weight.float() * self.faster, self.bias.float()
            )
        return scores


def prepare_adapter(network: SpanNetwork, shape: AdapterShape, dropout: float = 0.0) -> None:
    """Freeze the encoder but for what the shape says learns."""
    adapt(network.trunk, shape, dropout)
    network.weight.requires_grad_(True)
    network.bias.requires_grad_(True)


def adapter_tensors(network: SpanNetwork) -> dict[str, Tensor]:
    """Return what was trained, in fp16; the head with its speed multiplied in."""
    found = {
        name: value.detach().float() for name, value in network.named_parameters() if value.requires_grad
    }
    found["weight"] = found["weight"] * network.faster
    return {name: value.to(torch.float16).cpu().contiguous() for name, value in found.items()}


def with_adapter(trunk: nn.Module, shape: AdapterShape, tensors: dict[str, Tensor]) -> SpanNetwork:
    """Make the network those tensors were trained for, merged and ready to read; ValueError if they do not fit."""
    network = SpanNetwork(trunk)
    prepare_adapter(network, shape)
    fill_learned(network, tensors)
    merge_lora(network.trunk)
    return network
