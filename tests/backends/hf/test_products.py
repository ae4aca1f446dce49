"""Linear layers by oneDNN against those of torch, and where they must stay torch's."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from ensue.backends.hf.products import by_onednn

if not torch.backends.mkldnn.is_available():
    pytest.skip("this torch has no oneDNN", allow_module_level=True)


def layers(bias: bool = True) -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    plain = nn.Linear(300, 500, bias=bias).requires_grad_(False)
    quick = copy.deepcopy(plain)
    by_onednn(quick)
    assert "forward" in vars(quick)
    return plain, quick


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(300,), (1, 300), (64, 300), (3, 41, 300), (2, 5, 17, 300), (0, 300)])
def test_products_are_those_of_torch_but_for_the_last_bits(shape, bias):
    plain, quick = layers(bias)
    states = torch.randn(shape)
    with torch.inference_mode():
        expected, found = plain(states), quick(states)
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_states_that_lie_apart_in_memory():
    plain, quick = layers()
    states = torch.randn(300, 2, 90).transpose(0, 2)
    with torch.inference_mode():
        torch.testing.assert_close(quick(states), plain(states), rtol=1e-5, atol=1e-5)


def test_what_learns_learns_as_before():
    plain, quick = layers()
    states = torch.randn(100, 300)
    for layer in (plain, quick):
        layer.requires_grad_(True)
        layer(states).square().sum().backward()
    torch.testing.assert_close(quick.weight.grad, plain.weight.grad)


def test_other_dtypes_and_autocast_stay_torchs():
    plain, quick = layers()
    states = torch.randn(100, 300)
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert quick(states).dtype == torch.bfloat16
        assert torch.equal(quick(states), plain(states))
    with torch.inference_mode():
        assert torch.equal(quick.bfloat16()(states.bfloat16()), plain.bfloat16()(states.bfloat16()))


def test_a_copy_has_its_own_weights():
    _, quick = layers()
    again = copy.deepcopy(quick)
    again.weight.zero_()
    again.bias.zero_()
    with torch.inference_mode():
        assert not again(torch.ones(100, 300)).any()
        assert quick(torch.ones(100, 300)).any()


def test_small_layers_are_left_alone():
    layer = nn.Linear(64, 128)
    by_onednn(layer)
    assert "forward" not in vars(layer)
