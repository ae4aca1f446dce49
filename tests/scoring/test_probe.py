"""What a probe finds out: models that take padding for text, that look ahead, or that give no number."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from ensue.errors import EnsueError
from ensue.models.request import MaskedPart, PartScore
from ensue.scoring.causal import Finished
from ensue.scoring.masked import MaskedExecutor
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from ensue.scoring.probe import (
    _TINY,
    CausalWay,
    MaskedWay,
    _causal_parts,
    _check_looks_back,
    _first_right,
    _gap,
    _masked_parts,
    find_causal_way,
    find_masked_way,
)
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


def answers(*values: float) -> Finished:
    return [(place, PartScore(np.array([value]))) for place, value in enumerate(values)]


def chosen(ways: dict[str, Any], model: Any = None) -> str:
    """Which of several ways is taken where a model's own numbers are 1 and 2."""

    def attempt(way: str) -> list[Finished]:
        if isinstance(ways[way], Exception):
            raise ways[way]
        return [[one] for one in answers(*ways[way])]

    reference = [np.array([1.0]), np.array([2.0])]
    return _first_right(model or network("llama"), list(ways), attempt, reference)


def test_the_first_way_with_the_models_own_numbers_is_taken() -> None:
    assert chosen({"a": (1.0, 2.0), "b": (1.0, 2.0)}) == "a"
    assert chosen({"a": (1.0, 2.1), "b": (1.1, 2.0), "c": (1.001, 2.0019)}) == "c"
    assert chosen({"a": (np.nan, 2.0), "b": ValueError("no"), "c": KeyError("no"), "d": (1.0, 2.0)}) == "d"


@pytest.mark.parametrize(
    ("ways", "words"),
    [
        ({}, "no path was tried"),
        ({"a": RuntimeError("x" * 200)}, f"RuntimeError: {'x' * 120}"),
        ({"a": ValueError("no"), "b": (1.0, 2.25)}, "scores moved by 0.25 nats"),
        ({"a": (1.0, 2.25), "b": TypeError("no")}, "TypeError: no"),
        ({"a": (1.0, np.nan)}, "scores moved by inf nats"),
    ],
)
def test_a_model_without_a_way_is_told_of_with_the_last_thing_that_went_wrong(
    ways: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG"), pytest.raises(EnsueError) as raised:
        chosen(ways)
    assert str(raised.value) == (
        f"LlamaForCausalLM cannot be scored: no way of running it gives its own numbers ({words})."
    )
    assert len(caplog.messages) == len(ways)
    assert not ways or words in caplog.messages[-1]


def test_low_precision_may_move_by_a_quarter_of_a_nat() -> None:
    coarse = SimpleNamespace(dtype=torch.bfloat16)
    assert chosen({"a": (1.0, 2.26), "b": (1.0, 2.25)}, coarse) == "b"
    # In the mean, and a single score by one nat.
    for moved, gap in (((0.0, 0.4), 0.2), ((0.4, 0.4), 0.4), ((0.0,) * 9 + (1.2,), 0.3)):
        assert _gap(coarse, np.zeros(len(moved)), np.asarray(moved)) == pytest.approx(gap)
    # float16 has three digits more: any score by a quarter of a nat.
    fine = SimpleNamespace(dtype=torch.float16)
    assert _gap(fine, np.zeros(10), np.asarray((0.0,) * 9 + (0.3,))) == pytest.approx(0.3)
    assert chosen({"a": (1.0, 2.01), "b": (1.0, 2.0)}, SimpleNamespace(dtype=torch.float64)) == "b"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_in_no_dtype_one_earlier_score_may_move_with_the_last_token(dtype: torch.dtype) -> None:
    class Peeking(SimpleNamespace):
        pass

    found, expected = np.zeros(15), np.zeros(15)
    found[3] = 0.3
    with pytest.raises(EnsueError, match="Peeking predicts a token from what comes after it"):
        _check_looks_back(Peeking(dtype=dtype), found, expected)
    found[3], found[-1] = 0, 9
    _check_looks_back(Peeking(dtype=dtype), found, expected)


def test_memory_that_ran_out_is_no_fault_of_the_way() -> None:
    with pytest.raises(RuntimeError, match="out of memory"):
        chosen({"a": RuntimeError("out of memory"), "b": (1.0, 2.0)})
    with pytest.raises(ZeroDivisionError):
        chosen({"a": ZeroDivisionError(), "b": (1.0, 2.0)})


@pytest.mark.parametrize(
    ("found", "expected", "gap"),
    [
        ([-1.0, -2.0], [-1.5, -2.0], 0.5),
        ([-1.0, -2.0], [-1.0, -1.75], 0.25),
        ([-np.inf, -2.0], [-np.inf, -2.0], 0.0),
        ([-np.inf, -2.0], [-1.0, -2.0], np.inf),
        ([np.nan, -2.0], [-1.0, -2.0], np.inf),
        ([np.inf], [-np.inf], np.inf),
    ],
)
def test_the_largest_difference_counts(found: list[float], expected: list[float], gap: float) -> None:
    fine, coarse = SimpleNamespace(dtype=torch.float32), SimpleNamespace(dtype=torch.float16)
    assert _gap(fine, np.array(found), np.array(expected)) == gap
    assert (_gap(coarse, np.array(found), np.array(expected)) == np.inf) == (gap == np.inf)


def test_the_probe_of_causal_models_forces_every_fast_path() -> None:
    """Prefixes of different lengths, some shared by several, and rows that are padded on either side."""
    parts = _causal_parts(VOCABULARY)
    rows = [part.ids.tolist() for part in parts]
    assert [len(row) for row in rows] == [16, 21, 26, 26, 11, 23, 23, 23]
    assert all(part.start == 1 and part.ids.dtype == np.int32 for part in parts)

    def shared(a: int, b: int) -> int:
        pairs = zip(rows[a], rows[b], strict=False)
        return next(place for place, (one, other) in enumerate(pairs) if one != other)

    assert [shared(0, i) for i in range(1, 8)] == [12, 12, 12, 0, 0, 0, 0]
    assert [shared(1, 2), shared(2, 3), shared(4, 5), shared(5, 6), shared(6, 7)] == [12, 21, 0, 16, 16]
    # The same everywhere and every time, from all of the vocabulary.
    assert rows == [part.ids.tolist() for part in _causal_parts(VOCABULARY)]
    assert rows[0] == np.random.default_rng(0).integers(0, VOCABULARY, 16, dtype=np.int32).tolist()
    drawn = {token for part in _causal_parts(4) for token in part.ids.tolist()}
    assert drawn == {0, 1, 2, 3}


def test_the_probe_of_masked_models_pads_and_masks_one_or_two() -> None:
    parts = _masked_parts(VOCABULARY)
    assert [(len(part.ids), part.targets, part.hidden) for part in parts] == [
        (14, (1, 11), ((1,), (11, 12))),
        (9, (1, 6), ((1,), (6, 7))),
        (5, (1, 2), ((1,), (2, 3))),
    ]
    assert all(part.ids.dtype == np.int32 for part in parts)
    tokens = {int(token) for part in _masked_parts(8) for token in part.ids}
    assert tokens == {4, 5, 6, 7}
    first = np.random.default_rng(0).integers(VOCABULARY // 2, VOCABULARY, 14, dtype=np.int32)
    assert parts[0].ids.tolist() == first.tolist()


def test_ways_run_as_they_say() -> None:
    model = network("llama")
    for way in (CausalWay(True, True, True), CausalWay(False, True, False), CausalWay(True, False, False)):
        executor = way.plain(model, ROOMY)
        assert (executor.network.split, executor.share, executor.pack) == way[:3]
        assert executor.budget == ROOMY
    alone = CausalWay(False, False, False, alone=True).plain(model, ROOMY)
    assert (alone.network.split, alone.share, alone.pack, alone.network.rope) == (False, False, False, None)
    assert alone.budget.batch == 1
    for masked in (MaskedWay(True, False), MaskedWay(False, True)):
        one = masked.executor(network("bert"), ROOMY, MASK)
        assert (one.network.split, one.pad, one.mask, one.budget) == (*masked, MASK, ROOMY)


def test_what_is_to_be_compiled_and_cannot_be_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    way = find_causal_way(network("llama"))
    for compile in ("never", "auto", "always"):
        way.executor(network("llama"), _TINY, compile, lambda _: True)
    assert caplog.messages == ["LlamaForCausalLM is not compiled: only on a GPU is any model"]
