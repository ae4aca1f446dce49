"""An encoder with a span head: for every token, how likely an answer begins and ends there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ensue.backends.hf.lora import add_lora, fill_learned, merge_lora


@dataclass(frozen=True)
class AdapterShape:
    """What of an encoder learns: adapters of a rank on linear layers (all, where no targets are named), and, with
    `vectors`, its biases, norms and token types too, which are few."""

    rank: int = 32
    alpha: float = 64.0
    targets: tuple[str, ...] = ()
    vectors: bool = True


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
    network.trunk.requires_grad_(False)
    if shape.vectors:
        for name, parameter in network.trunk.named_parameters():
            if "pooler" not in name and (parameter.ndim == 1 or "token_type_embeddings" in name):
                parameter.requires_grad_(True)
    add_lora(network.trunk, rank=shape.rank, alpha=shape.alpha, dropout=dropout, targets=shape.targets)
    # After the layers were wrapped, so that only the new matrices and the vectors above learn.
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
