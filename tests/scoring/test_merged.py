"""Projections that read the same states, merged into one product."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from ensue.scoring.merged import MergedProjections, OnlyOnce
from ensue.scoring.runners import layers_of

SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
}


def network(config: Any) -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)


@pytest.mark.parametrize("config", [LlamaConfig(**SIZES), Qwen2Config(**SIZES)], ids=["llama", "biases"])
def test_one_product_for_what_reads_the_same_states(config: Any) -> None:
    model = network(config)
    layer = layers_of(model.model)[0]
    states = torch.randn(1, 7, 32)
    places = model.model.rotary_emb(states, torch.arange(7)[None])
    products: list[int] = []

    def count(graph: Any, inputs: Any) -> Any:
        OnlyOnce()(graph.graph)
        graph.recompile()
        names = [str(node.target) for node in graph.graph.nodes]
        products.append(sum(name.startswith(("aten.mm", "aten.addmm")) for name in names))
        return graph

    def run() -> Any:
        torch._dynamo.reset()
        compiled = torch.compile(layer._call_impl, backend=aot_autograd(fw_compiler=count))
        with torch.inference_mode():
            return compiled(states, position_embeddings=places)

    plain = run()
    merged = MergedProjections(layers_of(model.model))
    with merged():
        together = run()
    torch._dynamo.reset()
    assert products == [7, 4]
    torch.testing.assert_close(together, plain)


def test_weights_are_held_once_and_projections_put_back() -> None:
    model = network(LlamaConfig(**SIZES))
    ids = torch.arange(9)[None]
    before = model(ids).logits
    names = [name for name, _ in model.named_parameters()]
    values = {name: value.clone() for name, value in model.named_parameters()}
    merged = MergedProjections(layers_of(model.model))
    with merged():
        torch.testing.assert_close(model(ids).logits, before)
    assert [name for name, _ in model.named_parameters()] == names
    for name, value in model.named_parameters():
        torch.testing.assert_close(value, values[name])
    attention = model.model.layers[0].self_attn
    storages = {one.weight.untyped_storage().data_ptr() for one in (attention.q_proj, attention.v_proj)}
    assert len(storages) == 1
    assert len(merged.members) == 2 * 5


def test_what_is_not_alike_is_left_alone() -> None:
    model = network(LlamaConfig(**SIZES))
    first, second = layers_of(model.model)
    first.self_attn.k_proj = torch.nn.Sequential(first.self_attn.k_proj)
    first.mlp.up_proj = first.mlp.up_proj.double()
    second.mlp.gate_proj.weight.requires_grad_(True)
    merged = MergedProjections([first, second])
    assert {member.parent for member in merged.members} == {second.self_attn}
