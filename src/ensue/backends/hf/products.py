"""Products of linear layers in float32 by oneDNN on AMD processors with AVX-512, where torch's MKL keeps to AVX2."""

from __future__ import annotations

from types import MethodType
from typing import Any

import torch
from torch import nn

from ensue.environment import is_amd_with_avx512

# Weights of a layer times rows: of smaller products the call itself is most.
_LEAST_WEIGHTS, _LEAST = 2**16, 2**22


def quicken(network: Any) -> None:
    """Let the linear layers of a network on the CPU run about twice as fast, if this processor is one of those.

    By the processor alone, never by a measurement: the same machine must give the same scores.
    """
    if is_amd_with_avx512() and torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available():
        by_onednn(network)


def by_onednn(network: nn.Module) -> None:
    """Let the larger linear layers run by oneDNN wherever nothing learns from what they return."""
    for module in network.modules():
        if type(module) is nn.Linear and module.weight.numel() >= _LEAST_WEIGHTS:
            module.forward = MethodType(forward, module)


def forward(layer: nn.Linear, states: torch.Tensor) -> torch.Tensor:
    """Return what `nn.Linear` returns, but for the last bits."""
    weight, width = layer.weight, layer.in_features
    plain = (
        torch.is_grad_enabled()
        or torch.is_autocast_enabled("cpu")
        or not states.dtype == weight.dtype == torch.float32
        or not states.device.type == weight.device.type == "cpu"
        or states.numel() // width * weight.numel() < _LEAST
    )
    if plain:
        return nn.functional.linear(states, weight, layer.bias)
    rows = states.reshape(-1, width).contiguous()
    made = torch.ops.mkldnn._linear_pointwise(rows, weight, layer.bias, "none", [], "")
    return made.view(*states.shape[:-1], layer.out_features)
