"""Rotary positions that depend on the length: any batch gives the numbers of one text at a time on a fresh model."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from ensue.errors import EnsueError
from ensue.models.request import TokenPart
from ensue.scoring.plan import Budget
from ensue.scoring.probe import CausalWay, find_causal_way
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
    torch.set_num_threads(1)
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
    executor = find_causal_way(model).executor(model, budget)
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
    find_causal_way(model).executor(model, ROOMY)
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
    found = dict(item for batch in way.executor(hidden, ROOMY).run(asked) for item in batch)
    for index, part in enumerate(asked):
        np.testing.assert_allclose(found[index].logprobs, expected(model, part), atol=1e-4)


def _untold(module: Any) -> Any:
    return lambda x, position_ids: type(module).forward(module, x, position_ids)
