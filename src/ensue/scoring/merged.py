"""Projections of one layer that read the same states, run as one product: fewer and wider ones keep a GPU busier."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import nn
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files

# What reads the same states, by the names that most architectures give them.
_GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


class OnlyOnce(CustomGraphPass):  # type: ignore[misc]
    """Lets a compiler make equal products once, which it does by itself only where it trains."""

    _NAMES = ("mm", "addmm", "t", "permute", "transpose", "view", "_unsafe_view", "reshape", "expand")

    def __call__(self, graph: torch.fx.graph.Graph) -> None:
        seen: dict[tuple[object, str], torch.fx.Node] = {}
        for node in list(graph.nodes):
            packet = getattr(node.target, "overloadpacket", None)
            if node.op != "call_function" or packet not in self._packets():
                continue
            key = (node.target, str((node.args, node.kwargs)))
            if key in seen:
                node.replace_all_uses_with(seen[key])
                graph.erase_node(node)
            seen.setdefault(key, node)

    def _packets(self) -> set[object]:
        return {getattr(torch.ops.aten, name) for name in self._NAMES}

    def uuid(self) -> bytes:
        return bytes(get_hash_for_files((__file__,)))


class _Slice(nn.Module):  # type: ignore[misc]
    """One projection of several, cut out of the product of all, which a compiler with `OnlyOnce` makes once."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, begin: int, end: int) -> None:
        super().__init__()
        self.register_buffer("all_weight", weight, persistent=False)
        self.register_buffer("all_bias", bias, persistent=False)
        self.begin, self.end = begin, end

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(states, self.all_weight, self.all_bias)[..., self.begin : self.end]


class _Merged(NamedTuple):
    """Where a projection stands, and what takes its place."""

    parent: nn.Module
    name: str
    plain: nn.Module
    slice: _Slice


class MergedProjections:
    """The projections of layers that can be merged; the layers' own weights become views of the merged ones."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self.members = [
            member for layer in layers for module in layer.modules() for member in _members(module)
        ]

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Put the merged projections in place, for compiled layers alone: else each makes the whole product."""
        for parent, name, _, merged in self.members:
            parent._modules[name] = merged
        try:
            yield
        finally:
            for parent, name, plain, _ in self.members:
                parent._modules[name] = plain


def _members(parent: nn.Module) -> Iterator[_Merged]:
    for names in _GROUPS:
        group = [parent._modules.get(name) for name in names]
        linears = [one for one in group if type(one) is nn.Linear and not one._forward_hooks]
        if len(linears) == len(names) and _alike(linears):
            yield from _merge(parent, names, linears)


def _alike(linears: Sequence[nn.Linear]) -> bool:
    """Return whether projections read states of one width and have weights of one kind."""
    facts = {
        (one.in_features, one.weight.dtype, one.weight.device, one.bias is None, type(one.weight))
        for one in linears
    }
    return len(facts) == 1 and not any(one.weight.requires_grad for one in linears)


def _merge(parent: nn.Module, names: Sequence[str], linears: Sequence[nn.Linear]) -> Iterator[_Merged]:
    weight = torch.cat([one.weight.detach() for one in linears])
    biases = [one.bias.detach() for one in linears if one.bias is not None]
    bias = torch.cat(biases) if biases else None
    begin = 0
    for name, linear in zip(names, linears, strict=True):
        end = begin + linear.out_features
        # Not held twice.
        linear.weight.data = weight[begin:end]
        yield _Merged(parent, name, linear, _Slice(weight, bias, begin, end))
        begin = end
