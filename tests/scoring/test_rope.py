"""Rotary positions that depend on the length: any batch gives the numbers of one text at a time on a fresh model."""

from __future__ import annotations

import copy
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from ensue.errors import EnsueError
from ensue.models.request import TokenPart
from ensue.scoring.plan import Budget
from ensue.scoring.probe import CausalWay, find_causal_way
from ensue.scoring.rope import LengthRope, length_rope, one_for_all, states_length_rope
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY

BORDER = 20
ROOMY = Budget(batch=512, full=128, cache=4096, attended=8192)
_SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "pad_token_id": 0,
}
_FACTORS = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0, 1.1, 1.2, 1.3],
    "long_factor": [1.5, 4.0, 9.0, 20.0],
    "original_max_position_embeddings": BORDER,
}


def config(kind: str) -> Any:
    t = transformers
    long = {"max_position_embeddings": 128}
    scaled = {"rope_theta": 10000.0, "factor": 4.0}
    return {
        "phi3": lambda: t.Phi3Config(
            **_SIZES, **long, original_max_position_embeddings=BORDER, rope_parameters=_FACTORS
        ),
        "phimoe": lambda: t.PhimoeConfig(
            **_SIZES,
            **long,
            num_local_experts=2,
            rope_parameters={**_FACTORS, "short_mscale": 1.0, "long_mscale": 1.6},
        ),
        "dynamic": lambda: t.LlamaConfig(
            **_SIZES, max_position_embeddings=BORDER, rope_parameters={**scaled, "rope_type": "dynamic"}
        ),
        "yarn": lambda: t.LlamaConfig(
            **_SIZES,
            **long,
            rope_parameters={**scaled, "rope_type": "yarn", "original_max_position_embeddings": BORDER},
        ),
    }[kind]()


@pytest.fixture(scope="module", params=["phi3", "phimoe", "dynamic", "yarn"])
def made(request: pytest.FixtureRequest) -> tuple[str, Any]:
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(config(request.param)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)
    return request.param, model


def parts() -> list[TokenPart]:
    """Texts on both sides of the border, the very lengths beside it among them, most with a prefix in common."""
    generator = np.random.default_rng(1)
    stem = generator.integers(1, VOCABULARY, 14)
    lengths = [*range(BORDER - 3, BORDER + 4), 40, 40, 55, 9]
    rows = [np.concatenate([stem, generator.integers(1, VOCABULARY, n)])[:n] for n in lengths]
    long = generator.integers(1, VOCABULARY, 30)
    rows += [np.concatenate([long, generator.integers(1, VOCABULARY, 3)]) for _ in range(4)]
    return [TokenPart(row.astype(np.int32), 1) for row in rows]


def expected(model: Any, part: TokenPart) -> list[float]:
    # A copy for each: a dynamic model remembers the longest text it has seen.
    return naive.token_logprobs(copy.deepcopy(model), part.ids.tolist(), part.start)


@pytest.mark.parametrize("budget", [ROOMY, Budget(batch=30, full=20, cache=40, attended=300)])
def test_scores_do_not_depend_on_what_else_is_in_the_batch(made: tuple[str, Any], budget: Budget) -> None:
    _, fresh = made
    model = copy.deepcopy(fresh)
    executor = find_causal_way(model).plain(model, budget)
    assert executor.share
    asked = parts()
    found = dict(item for batch in executor.run(asked) for item in batch)
    for index, part in enumerate(asked):
        np.testing.assert_allclose(found[index].logprobs, expected(fresh, part), atol=1e-4)


def test_the_border_makes_a_difference(made: tuple[str, Any]) -> None:
    """Else the test above would pass whatever is run together."""
    kind, model = made
    long = parts()[9].ids.tolist()
    whole = naive.token_logprobs(copy.deepcopy(model), long, 1)[:10]
    cut = naive.token_logprobs(copy.deepcopy(model), long[:12], 1)[:10]
    assert (np.abs(np.subtract(whole, cut)).max() > 0.02) == (kind != "yarn")


def test_the_probe_leaves_the_model_as_it_was(made: tuple[str, Any]) -> None:
    _, fresh = made
    model = copy.deepcopy(fresh)
    find_causal_way(model).plain(model, ROOMY)
    part = parts()[3]
    np.testing.assert_allclose(
        naive.token_logprobs(model, part.ids.tolist(), 1), expected(fresh, part), atol=1e-6
    )
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_positions_that_cannot_be_held_are_run_one_text_at_a_time(made: tuple[str, Any]) -> None:
    """A model with code of its own, which no module tells about but its configuration."""
    kind, model = made
    if kind == "yarn":
        return
    hidden = copy.deepcopy(model)
    for module in hidden.modules():
        if hasattr(module, "rope_type"):
            module.forward = _untold(copy.deepcopy(module))
            del module.rope_type
    if kind == "dynamic":  # whose numbers depend on what it saw before, so that it has none of its own
        with pytest.raises(EnsueError, match="no way of running it gives its own numbers"):
            find_causal_way(hidden)
        return
    way = find_causal_way(hidden)
    assert way == CausalWay(split=True, share=False, pack=False, alone=True)
    asked = parts()
    found = dict(item for batch in way.plain(hidden, ROOMY).run(asked) for item in batch)
    for index, part in enumerate(asked):
        np.testing.assert_allclose(found[index].logprobs, expected(model, part), atol=1e-4)


def _untold(module: Any) -> Any:
    return lambda x, position_ids: type(module).forward(module, x, position_ids)


class Rotary(torch.nn.Module):
    """A rotary module as far as it tells of itself."""

    def __init__(self, rope_type: Any, parameters: dict[str, Any], longest: int = 50) -> None:
        super().__init__()
        self.rope_type = rope_type
        self.config = SimpleNamespace(rope_parameters=parameters)
        self.original_max_seq_len = longest


def rotary(kind: str, border: int = 20) -> Rotary:
    return Rotary(kind, {"rope_type": kind, "original_max_position_embeddings": border}, longest=border)


def model_of(*modules: torch.nn.Module) -> Any:
    return torch.nn.ModuleList([torch.nn.Linear(1, 1), *modules])


def test_only_modules_that_follow_the_length_are_held() -> None:
    long, dynamic, plain = rotary("longrope"), rotary("dynamic"), rotary("yarn")
    assert length_rope(model_of(plain)) is None
    for modules, each in (([long], False), ([dynamic], True), ([long, dynamic], True)):
        found = length_rope(model_of(plain, *modules))
        assert found is not None
        assert (found.modules, found.border, found.each) == (modules, 20, each)
    # With two borders every length is on its own beyond the first.
    two = length_rope(model_of(rotary("longrope", 30), rotary("longrope", 20)))
    assert two is not None
    assert (len(two.modules), two.border, two.each) == (2, 20, True)


def test_borders_of_layers_of_each_kind() -> None:
    kinds = {"full_attention": "dynamic", "sliding_attention": "default"}
    tables = {name: {"rope_type": kind} for name, kind in kinds.items()}
    found = length_rope(model_of(Rotary(kinds, tables, longest=33)))
    assert found is not None
    assert (found.border, found.each) == (33, True)
    assert length_rope(model_of(Rotary({"full_attention": "default"}, {}))) is None
    scaled = length_rope(model_of(Rotary("dynamic_ntk", {"rope_type": "dynamic_ntk"}, longest=12)))
    assert scaled is not None
    assert (scaled.border, scaled.each) == (12, True)


@pytest.mark.parametrize(
    ("length", "each", "stands_for"),
    [
        (1, True, 20),
        (20, True, 20),
        (21, True, 21),
        (40, True, 40),
        (20, False, 20),
        (21, False, 21),
        (40, False, 21),
    ],
)
def test_a_length_stands_for_all_that_share_its_frequencies(length: int, each: bool, stands_for: int) -> None:
    assert LengthRope([], 20, each=each).length_for(length) == stands_for


@pytest.mark.parametrize(
    ("stated", "follows"),
    [
        ({"rope_parameters": {"rope_type": "longrope"}}, True),
        ({"rope_parameters": {"rope_type": "dynamic"}}, True),
        ({"rope_parameters": {"rope_type": "yarn"}}, False),
        ({"rope_scaling": {"type": "su"}}, True),
        ({"rope_scaling": {"type": "linear"}}, False),
        ({"rope_parameters": None, "rope_scaling": {"type": "longrope"}}, True),
        ({"rope_parameters": {"full": {"rope_type": "default"}, "local": {"rope_type": "dynamic"}}}, True),
        ({"rope_parameters": {"full": {"rope_type": "default"}}}, False),
        ({"rope_scaling": None}, False),
        ({}, False),
    ],
)
def test_a_configuration_tells_whether_positions_follow_the_length(
    stated: dict[str, Any], follows: bool
) -> None:
    text = SimpleNamespace(**stated)
    config = SimpleNamespace(get_text_config=lambda: text)
    assert states_length_rope(config) == follows
    model = SimpleNamespace(modules=lambda: [torch.nn.Linear(1, 1)], config=config)
    assert one_for_all(model) == (0 if follows else math.inf)
    model.modules = lambda: [rotary("longrope", 30)]
    assert one_for_all(model) == 30


def test_what_a_module_saw_is_forgotten_layer_by_layer() -> None:
    kinds = {"full": "dynamic", "local": "dynamic", "bare": "dynamic"}
    module = Rotary(kinds, {name: {"rope_type": kind} for name, kind in kinds.items()}, longest=7)
    for name in ("full", "local"):
        module.register_buffer(f"{name}_original_inv_freq", torch.tensor([1.0, 2.0]), persistent=False)
        module.register_buffer(f"{name}_inv_freq", torch.tensor([9.0, 9.0]), persistent=False)
        setattr(module, f"{name}_max_seq_len_cached", 99)
    LengthRope([module], 7, each=True).forget()
    for name in ("full", "local"):
        assert getattr(module, f"{name}_inv_freq").tolist() == [1.0, 2.0]
        assert getattr(module, f"{name}_max_seq_len_cached") == 7
        # A copy: what is written over the one must not change the other.
        assert getattr(module, f"{name}_inv_freq") is not getattr(module, f"{name}_original_inv_freq")
    assert not hasattr(module, "bare_inv_freq")
    assert not module.state_dict()
    fixed = rotary("longrope")
    fixed.register_buffer("original_inv_freq", torch.tensor([1.0]))
    LengthRope([fixed], 7, each=True).forget()
    assert not hasattr(fixed, "inv_freq")


def test_a_module_of_another_form_does_not_hold() -> None:
    class Odd(Rotary):
        def forward(self, states: torch.Tensor, positions: torch.Tensor) -> None:
            return None

    odd = Odd("longrope", {})
    assert not LengthRope([odd], 20, each=False).holds()  # it has no buffers
    odd.register_buffer("inv_freq", torch.ones(1))
    assert not LengthRope([odd], 20, each=False).holds()  # and gives no tables


def test_modules_that_follow_the_length_hold_and_are_left_as_they_were(made: tuple[str, Any]) -> None:
    kind, fresh = made
    model = copy.deepcopy(fresh)
    rope = length_rope(model)
    assert (rope is None) == (kind == "yarn")
    if rope is None:
        return
    assert rope.holds()
    # A module whose frequencies change at another length than is thought cannot be held.
    assert not LengthRope(rope.modules, rope.border - 4, each=False).holds()
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())
    (module,) = rope.modules
    assert torch.equal(module.inv_freq, length_rope(fresh).modules[0].inv_freq)  # type: ignore[union-attr]
