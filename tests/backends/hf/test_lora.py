"""Low-rank adapters: they begin as the network was, follow the formula, and merge into the same network."""

import pytest
import torch
from torch import nn

from ensue.backends.hf.lora import LoraLinear, add_lora, merge_lora
from ensue.errors import EnsueError


def network():
    torch.manual_seed(0)
    return nn.ModuleDict(
        {"query": nn.Linear(6, 5), "pooler": nn.Linear(5, 5), "value": nn.Linear(5, 4, bias=False)}
    )


def run(net, x):
    return net["value"](torch.tanh(net["query"](x)))


def test_an_adapter_begins_as_nothing_and_merges_into_the_formula():
    net, x = network(), torch.randn(3, 6)
    before = run(net, x)
    plain = {name: value.clone() for name, value in net.state_dict().items()}
    assert add_lora(net, rank=2, alpha=6.0) == ["query", "value"]
    assert torch.equal(run(net, x), before)
    for layer in (net["query"], net["value"]):
        nn.init.normal_(layer.up)
    adapted = {name: (net[name].up.detach(), net[name].down.detach()) for name in ("query", "value")}
    learned = run(net, x)
    assert not torch.allclose(learned, before, atol=1e-2)
    merge_lora(net)
    assert not any(isinstance(layer, LoraLinear) for layer in net.modules())
    torch.testing.assert_close(run(net, x), learned)
    for name, (up, down) in adapted.items():
        torch.testing.assert_close(net[name].weight, plain[f"{name}.weight"] + 6.0 / 2 * up @ down)


def test_targets_choose_layers_by_name_and_unknown_ones_are_refused():
    net = network()
    assert add_lora(net, rank=1, alpha=1.0, targets=["value"]) == ["value"]
    assert isinstance(net["query"], nn.Linear)
    with pytest.raises(EnsueError, match=r"called key; there are pooler, query, value"):
        add_lora(network(), rank=1, alpha=1.0, targets=["key"])
