"""What a probe finds out: models that take padding for text, that look ahead, or that give no number."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart
from ensue.scoring.masked import MaskedExecutor
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.probe import MaskedWay, find_causal_way, find_masked_way
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY, network

MASK = 4
ROOMY = Budget(batch=512, full=512, cache=0, attended=512)
_SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48}


@cache
def fnet() -> Any:
    """A model that mixes all positions, padding too, and has no mask to tell it not to."""
    torch.manual_seed(5)
    config = transformers.FNetConfig(**_SMALL, max_position_embeddings=64)
    model = transformers.FNetForMaskedLM(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)
    return model


def masked_parts() -> list[MaskedPart]:
    generator = np.random.default_rng(2)
    return [
        MaskedPart(generator.integers(5, VOCABULARY, n).astype(np.int32), (1, 2), ((1,), (2,)))
        for n in (20, 12, 12, 7, 5)
    ]


def gap(executor: MaskedExecutor, model: Any) -> float:
    parts = masked_parts()
    found = dict(item for batch in executor.run(parts) for item in batch)
    assert sorted(found) == list(range(len(parts)))
    return max(
        float(
            np.abs(
                found[i].logprobs
                - naive.masked_logprobs(model, part.ids.tolist(), part.targets, part.hidden, MASK)
            ).max()
        )
        for i, part in enumerate(parts)
    )


def test_a_masked_model_that_takes_padding_for_text_gets_none() -> None:
    model = fnet()
    assert gap(MaskedExecutor(Network(model), ROOMY, MASK), model) > 0.1
    executor = find_masked_way(model, MASK).executor(model, ROOMY, MASK)
    assert not executor.pad
    assert gap(executor, model) < 1e-4


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_masked_model_that_heeds_its_mask_is_padded(family: str) -> None:
    model = network(family)
    assert find_masked_way(model, MASK) == MaskedWay(split=True, pad=True)
    assert gap(find_masked_way(model, MASK).executor(model, ROOMY, MASK), model) < 1e-4


def test_texts_of_one_length_still_run_together_without_padding() -> None:
    widths: list[tuple[int, ...]] = []

    class Watched(Network):
        def hidden(self, ids, **more):  # type: ignore[no-untyped-def]
            widths.append(tuple(ids.shape))
            return super().hidden(ids, **more)

    list(MaskedExecutor(Watched(fnet()), ROOMY, MASK, pad=False).run(masked_parts()))
    assert widths == [(2, 20), (4, 12), (2, 7), (2, 5)]


@pytest.mark.parametrize("family", ["xlnet", "bert-lm-head"])
def test_a_model_that_looks_ahead_is_no_causal_one(family: str) -> None:
    torch.manual_seed(6)
    if family == "xlnet":
        config = transformers.XLNetConfig(vocab_size=VOCABULARY, d_model=32, n_layer=2, n_head=4, d_inner=48)
        model = transformers.XLNetLMHeadModel(config)
    else:
        model = transformers.BertLMHeadModel(transformers.BertConfig(**_SMALL, num_attention_heads=4))
    model = model.eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.normal_(0, 0.25)
    with pytest.raises(EnsueError, match="from what comes after it") as raised:
        find_causal_way(model)
    assert type(model).__name__ in str(raised.value)


def test_a_model_without_numbers_is_told_of_with_its_dtype() -> None:
    torch.manual_seed(7)
    config = transformers.LlamaConfig(**_SMALL, num_attention_heads=4)
    model = transformers.LlamaForCausalLM(config).eval().requires_grad_(False).half()
    model.model.norm.weight.fill_(60000.0)
    with pytest.raises(EnsueError, match=r"nan .* in float16.*bfloat16"):
        find_causal_way(model)


def test_a_token_that_is_impossible_does_not_stand_in_the_way() -> None:
    """A vocabulary with tokens that are ruled out: the fast paths still agree with the model."""

    class Ruled(transformers.LlamaForCausalLM):
        def forward(self, *args, **kwargs):  # type: ignore[no-untyped-def]
            out = super().forward(*args, **kwargs)
            out.logits[..., ::3] = -torch.inf
            return out

    torch.manual_seed(8)
    model = Ruled(transformers.LlamaConfig(**_SMALL, num_attention_heads=4)).eval().requires_grad_(False)
    assert find_causal_way(model).share
