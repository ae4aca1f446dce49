"""A model as a trunk and a head, and the pool of keys and values, each against the plain thing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from ensue.models.request import TokenPart
from ensue.scoring.causal import CausalExecutor
from ensue.scoring.network import BranchCache, Network, Pool, _TrunkOutput
from ensue.scoring.plan import Budget
from tests.scoring import naive
from tests.scoring.networks import VOCABULARY, network

IDS = torch.tensor([[3, 14, 15, 9, 26, 5, 35]])


@pytest.mark.parametrize("family", ["llama", "gpt2", "gemma2", "granite", "bloom", "bert", "opt"])
def test_the_head_on_the_trunks_states_is_the_model(family: str) -> None:
    model = network(family)
    # OPT's trunk hands on more than its last states.
    apart = Network(model, split=family != "opt")
    expected = model(input_ids=IDS).logits[0]
    found = apart.logits(apart.hidden(IDS)[0])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    whole = Network(model, split=False)
    torch.testing.assert_close(whole.logits(whole.hidden(IDS)[0]), expected)
    assert whole.logits(whole.hidden(IDS)[0].half()).dtype == torch.float32


def test_the_trunk_is_put_back_also_where_the_head_fails() -> None:
    model = network("llama")
    apart = Network(model)
    before = apart.trunk.forward
    with pytest.raises(RuntimeError):
        apart.logits(torch.zeros(2, 5))  # too narrow for the head
    assert apart.trunk.forward == before
    torch.testing.assert_close(
        apart.logits(apart.hidden(IDS)[0]), model(input_ids=IDS).logits[0], atol=1e-4, rtol=1e-4
    )


@pytest.mark.parametrize("chunk", [1, 3, 7, 100])
def test_log_probabilities_are_made_so_many_rows_at_a_time(chunk: int) -> None:
    model = network("llama")
    apart = Network(model)
    apart.chunk = chunk
    rows: list[int] = []
    original = apart._head
    apart._head = lambda hidden: rows.append(len(hidden)) or original(hidden)  # type: ignore[method-assign,func-returns-value]
    targets = np.array([60, 0, 7, 3, 14, 15, 9])
    found = apart.logprobs(apart.hidden(IDS)[0], targets)
    table = torch.log_softmax(model(input_ids=IDS).logits[0].double(), -1)
    np.testing.assert_allclose(found, table[np.arange(7), targets].numpy(), atol=1e-5)
    assert found.dtype == np.float64
    assert rows == [min(chunk, 7 - begin) for begin in range(0, 7, chunk)]


def test_what_a_network_knows_of_its_model() -> None:
    llama, bert, mamba = (Network(network(family)) for family in ("llama", "bert", "mamba"))
    assert llama.vocabulary == VOCABULARY
    # 64 MB of float32 at a time.
    assert llama.chunk == 2**24 // VOCABULARY
    assert (llama.takes_positions, llama.takes_cache) == (True, True)
    assert (mamba.takes_positions, mamba.takes_cache) == (False, False)
    assert bert.takes_positions
    assert (llama.device.type, llama.dtype, llama.rope) == ("cpu", torch.float32, None)
    assert llama.lengths([3, 5]) == [None, None]


@pytest.mark.parametrize(
    ("facts", "sees"),
    [
        ({}, True),
        ({"layer_types": ["full_attention", "full_attention"]}, True),
        ({"layer_types": ["full_attention", "sliding_attention"]}, False),
        ({"layer_types": ["full_attention"], "sliding_window": 8}, True),
        ({"layer_types": None, "sliding_window": 8}, False),
        ({"sliding_window": None}, True),
        ({"window_size": 8}, False),
        ({"attention_window": [4]}, False),
        ({"attention_chunk_size": 8}, False),
        ({"attention_types": [["global", "local"]]}, False),
    ],
)
def test_a_mask_says_all_unless_a_layer_looks_back_only_so_far(facts: dict[str, Any], sees: bool) -> None:
    known = Network(network("llama"))
    config = SimpleNamespace(**facts)
    known.model = SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config))
    assert known.sees_by_mask == sees


@pytest.mark.parametrize(
    ("facts", "windows"),
    [
        ({}, {"": None}),
        ({"sliding_window": 8}, {"": 8}),
        ({"layer_types": ["full_attention"] * 2, "sliding_window": 8}, {"full_attention": None}),
        (
            {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8},
            {"sliding_attention": 8, "full_attention": None},
        ),
        ({"layer_types": ["full_attention", "linear_attention"]}, None),
        ({"window_size": 8}, None),
        ({"attention_chunk_size": 8, "sliding_window": 4}, None),
    ],
)
def test_how_far_layers_look_back_is_known_by_their_kinds(
    facts: dict[str, Any], windows: dict[str, int | None] | None
) -> None:
    known = Network(network("llama"))
    config = SimpleNamespace(**facts)
    known.model = SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config))
    assert known.windows == windows


def test_what_stands_for_a_trunks_output_has_its_states_and_nothing_else() -> None:
    states = torch.ones(2)
    stands = _TrunkOutput(states)
    assert stands[0] is stands.last_hidden_state is states
    assert stands[1] is None
    assert stands.past_key_values is stands.hidden_states is None  # type: ignore[attr-defined]


def test_slots_are_lent_and_given_back() -> None:
    pool = Pool(6)
    first, second = pool.take(2), pool.take(3)
    assert (first.tolist(), second.tolist()) == ([0, 1], [2, 3, 4])
    assert first.dtype == np.int64
    pool.give_back(first)
    # What was given back last is lent first, in the same order.
    assert pool.take(3).tolist() == [0, 1, 5]
    pool.give_back(second)
    assert pool.take(3).tolist() == [2, 3, 4]


def test_keys_and_values_come_back_by_row_and_head() -> None:
    generator = torch.Generator().manual_seed(0)
    pool = Pool(5)
    kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for layer in (0, 1):
        keys, values = torch.randn(2, 4, 3, 2, generator=generator)  # tokens × heads × width
        pool.store(layer, torch.tensor([3, 0]), keys[:2], values[:2])
        pool.store(layer, torch.tensor([1, 4]), keys[2:], values[2:])
        kept[layer] = keys, values
    slots = torch.tensor([[0, 3, 4], [1, 0, 0]])
    order = {3: 0, 0: 1, 1: 2, 4: 3}
    for layer, stored in kept.items():
        loaded = pool.load(layer, slots)
        for found, own in zip(loaded, stored, strict=True):
            assert found.shape == (2, 3, 3, 2)
            for row in range(2):
                for place in range(3):
                    expected = own[order[int(slots[row, place])]]
                    assert torch.equal(found[row, :, place], expected)


@pytest.mark.parametrize("rows", [1, 3])
def test_each_row_sees_its_past_and_the_new_tokens_that_are_kept_enter_the_pool(rows: int) -> None:
    generator = torch.Generator().manual_seed(1)
    pool = Pool(4)
    past = torch.randn(2, 2, 3, 2, generator=generator)  # keys or values × tokens × heads × width
    pool.store(0, torch.tensor([0, 1]), past[0], past[1])
    new = torch.randn(2, rows, 3, 2, 2, generator=generator)  # rows × heads × tokens × width
    keep = torch.tensor([1, 2 * rows - 2])
    cache = BranchCache(pool, torch.tensor([[1, 0]]), keep, torch.tensor([3, 2]))
    found = cache.update(new[0], new[1], 0)
    for which in (0, 1):
        assert found[which].shape == (rows, 3, 4, 2)
        for row in range(rows):
            before = past[which][[1, 0]].transpose(0, 1)
            assert torch.equal(found[which][row], torch.cat([before, new[which][row]], 1))
    stored = pool.load(0, torch.tensor([[3, 2]]))
    for which in (0, 1):
        assert torch.equal(stored[which][0, :, 0], new[which][0, :, 1])
        assert torch.equal(stored[which][0, :, 1], new[which][rows - 1, :, 0])
    assert (cache.get_seq_length(), cache.get_query_offset(), cache.is_compileable) == (2, 2, False)
    # Older transformers pass positions instead of their number.
    assert cache.get_mask_sizes(5) == cache.get_mask_sizes(torch.arange(5)) == (7, 0)


def test_without_a_past_the_new_tokens_are_all_there_is() -> None:
    keys, values = torch.randn(2, 1, 3, 2, 2)
    cache = BranchCache(Pool(0), None, None, None)
    found = cache.update(keys, values, 0)
    assert found[0] is keys
    assert found[1] is values
    assert (cache.get_seq_length(), cache.get_mask_sizes(2)) == (0, (2, 0))


@pytest.mark.parametrize("share", [True, False])
def test_everything_is_made_where_the_model_is(share: bool) -> None:
    """Whatever device new tensors go to by themselves: here to one that holds no numbers."""
    model = network("gpt2")
    generator = np.random.default_rng(3)
    stem = generator.integers(0, VOCABULARY, 12)
    rows = [np.concatenate([stem, generator.integers(0, VOCABULARY, n)]) for n in (9, 20, 20, 14)]
    rows += [generator.integers(0, VOCABULARY, 70), generator.integers(0, VOCABULARY, 5)]
    parts = [TokenPart(row.astype(np.int32), 1) for row in rows]
    executor = CausalExecutor(Network(model), Budget(64, 30, 60, 400), share=share, pack=share)
    with torch.device("meta"):
        found = dict(item for batch in executor.run(parts) for item in batch)
    for index, part in enumerate(parts):
        expected = naive.token_logprobs(model, part.ids.tolist(), 1)
        np.testing.assert_allclose(found[index].logprobs, expected, atol=1e-4)
