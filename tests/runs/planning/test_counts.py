"""What counting models count is what the executor runs: tokens against a naive count, operations against torch's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM

import ensue
from ensue.backends.hf.running import default_budget
from ensue.models.request import Request, TokenPart
from ensue.runs.planning import counting
from ensue.runs.planning.counting import counting_model
from ensue.runs.planning.hardware import Hardware
from ensue.runs.planning.shapes import Shape, empty_network, known_shapes, shape_of
from ensue.runs.planning.tally import Ledger, Tally, Work, count_batches, count_rows, pairs
from ensue.runs.planning.target import Target, budget_of
from ensue.scoring.causal import CausalExecutor
from ensue.scoring.engine import score
from ensue.scoring.network import Network
from ensue.scoring.plan import Budget
from tests.support.corpus import document
from tests.support.effort import effort
from tests.support.tiny import save_bert, save_encoder, save_llama

BUDGET = Budget(batch=256, full=64, cache=2048, attended=4096)


def parts_of(rows: list[tuple[list[int], int]]) -> list[TokenPart]:
    return [TokenPart(np.asarray(ids, np.int32), min(start, len(ids) - 1)) for ids, start in rows]


texts = st.lists(
    st.tuples(st.lists(st.integers(1, 3), min_size=2, max_size=60), st.integers(1, 60)),
    min_size=1,
    max_size=12,
    unique_by=lambda row: tuple(row[0]),
)


@given(texts)
@settings(max_examples=effort(40, 400), deadline=None)
def test_sharing_never_feeds_more_and_every_prefix_is_fed_once_at_least(rows) -> None:
    parts = parts_of(rows)
    alone = sum(len(ids) for ids, _ in rows)
    # Every distinct prefix that something follows must be run.
    distinct = len({tuple(ids[: n + 1]) for ids, _ in rows for n in range(len(ids) - 1)})
    batches, _ = count_batches(parts, BUDGET, 0, share=True, pack=True)
    for tally in (batches, count_rows(parts, BUDGET, 0, share=True)):
        assert tally.given == alone
        assert distinct <= tally.fed <= alone
        assert tally.run >= tally.fed
    none, held = count_batches(parts, BUDGET, 0, share=False, pack=False)
    assert none.fed == none.given == alone
    assert held == 0


def test_what_tokens_see_is_counted_as_a_loop_does() -> None:
    for begin, end, window in [(0, 9, 0), (4, 9, 0), (0, 9, 3), (5, 9, 3), (2, 9, 4), (0, 2, 8)]:
        naive = sum(min(place + 1, window or place + 1) for place in range(begin, end))
        assert pairs(begin, end, window) == naive


@given(texts)
@settings(max_examples=effort(8, 60), deadline=None)
def test_operations_are_those_that_torch_counts_while_the_plan_is_run(tiny, rows) -> None:
    model, shape = tiny
    parts = parts_of(rows)
    executor = CausalExecutor(Network(model), BUDGET, pack=True)
    with FlopCounterMode(display=False) as counter:
        list(executor.run(parts))
    tally, held = count_batches(parts, BUDGET, 0, share=True, pack=True)
    planned = (
        shape.linear_operations(tally.run)
        + shape.attention_operations(tally.attended, 0)
        + shape.head_operations(tally.scored)
    )
    assert planned == pytest.approx(counter.get_total_flops(), rel=0.01)
    assert held <= BUDGET.cache


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    folder = save_llama(tmp_path_factory.mktemp("llama"), max_length=128)
    # Eager, so that torch sees the products of attention.
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    return model, shape_of(model)


def test_a_shape_without_weights_is_that_of_the_model(tmp_path: Path) -> None:
    folder = save_llama(tmp_path / "m")
    here = ensue.load_model(str(folder))
    nowhere = ensue.load_model(str(folder), device="meta")
    assert shape_of(nowhere.network) == shape_of(here.network)
    assert shape_of(here.network).weights == sum(p.numel() for p in here.network.parameters())


def test_the_shapes_of_the_package_have_the_weights_they_are_called_by() -> None:
    stated = {"135M": 134.5e6, "1B": 1.236e9, "3B": 3.21e9, "8B": 8.03e9, "70B": 70.55e9}
    for name, config in known_shapes().items():
        assert shape_of(empty_network(config)).weights == pytest.approx(stated[name], rel=0.002)


def requests_of(count: int) -> list[Request]:
    return [Request(" ".join(document(seed % 4, 6)) + f" {seed}") for seed in range(count)]


@pytest.mark.parametrize("save", [save_llama, save_bert])
def test_a_counting_model_scores_what_the_model_scores(tmp_path: Path, save) -> None:
    folder = str(save(tmp_path / "m", max_length=64))
    real, ledger = ensue.load_model(folder), Ledger()
    counting_one = counting_model(ensue.load_model(folder, device="meta"), ledger, Target())
    requests = requests_of(5)
    found, stand_in = score(real, requests), score(counting_one, requests)
    assert [one.tokens for one in stand_in.scores] == [one.tokens for one in found.scores]
    (work,) = ledger
    assert work.total.texts == len(requests)
    assert work.total.characters == sum(len(one.continuation) for one in requests)
    assert counting_one.card.identity != real.card.identity


def test_an_encoder_reads_the_tokens_that_its_tokenizer_makes(tmp_path: Path) -> None:
    folder = str(save_encoder(tmp_path / "m", max_length=16))
    real, ledger = ensue.load_model(folder), Ledger()
    sentences = document(3, 7)
    vectors = counting_model(ensue.load_model(folder, device="meta"), ledger, Target()).encode(sentences)
    assert vectors.shape == real.encode(sentences).shape
    (work,) = ledger
    naive = sum(len(real.tokenizer(text, truncation=True, max_length=16)["input_ids"]) for text in sentences)
    assert work.total.fed == naive
    assert work.total.run >= naive


def test_a_sample_is_near_the_whole_and_its_interval_says_how_near(tmp_path: Path, monkeypatch) -> None:
    folder = str(save_llama(tmp_path / "m", max_length=512))
    requests = requests_of(400)

    def planned() -> Work:
        ledger = Ledger()
        score(counting_model(ensue.load_model(folder, device="meta"), ledger, Target()), requests)
        (work,) = ledger
        return work

    whole = planned()
    assert not whole.blocks
    assert whole.spread(lambda one: one.given) == 0
    monkeypatch.setattr(counting, "SAMPLED", 40_000)
    sample = planned()
    assert sample.counted.texts < 300 < sample.total.texts == 400
    assert sample.total.given == pytest.approx(whole.total.given, rel=0.05)
    error = sample.spread(lambda one: one.given)
    assert 0 < error < 0.1
    assert abs(sample.total.given - whole.total.given) <= 4 * error * whole.total.given


def test_tallies_add_up_and_scale() -> None:
    one = Tally(texts=2, given=10, fed=6)
    assert (one + one).as_dict() == one.times(2).as_dict()


def test_padding_is_run_and_not_seen(tiny) -> None:
    parts = parts_of([([1, 2, 3, 1, 2], 1), ([3, 2], 1)])
    tally, _ = count_batches(parts, BUDGET, 0, share=False, pack=False)
    assert (tally.fed, tally.run, tally.seen, tally.attended) == (7, 10, 15 + 3, 50)
    assert torch.is_tensor(tiny[0].get_output_embeddings().weight)


def test_every_beam_of_a_text_that_is_written_is_counted(tmp_path: Path) -> None:
    folder, ledger = str(save_llama(tmp_path / "m", max_length=128)), Ledger()
    real: Any = ensue.load_model(folder)
    prompts, asked = [" ".join(document(seed, 2)) for seed in range(3)], {"max_tokens": 9, "min_tokens": 9}
    # How the model may be run is found out once, with texts of its own.
    real.generate(prompts[:1], beams=4, **asked)
    fed = 0

    def count(_module: Any, given: tuple[Any, ...], _made: Any) -> None:
        nonlocal fed
        fed += given[0].numel()

    real.network.get_input_embeddings().register_forward_hook(count)
    real.generate(prompts, beams=4, **asked)
    counting_model(ensue.load_model(folder, device="meta"), ledger, Target()).generate(
        prompts, beams=4, **asked
    )
    (work,) = ledger
    # The first word of each text is chosen after its prompt, which is not fed again.
    assert fed == work.total.run + work.total.written * 8 / 9
    assert work.total.written == 3 * 4 * 9


@pytest.mark.parametrize("batch", [None, 96])
@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_a_plan_has_the_budget_of_the_run(
    kind: str, batch: int | None, tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, memory = 40 * 2**30, 48 * 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, memory))
    model, shape = tiny
    for small in (True, False):
        if not small:
            config = known_shapes()["8B"]
            model, shape = empty_network(config).to(torch.bfloat16), shape_of(empty_network(config))
        there = SimpleNamespace(config=model.config, dtype=model.dtype, device=torch.device(kind))
        dtype = str(model.dtype).removeprefix("torch.")
        size = shape.weights * model.dtype.itemsize
        target = Target(kind=kind, memory=free + size, dtype=dtype, batch_tokens=batch)
        assert budget_of(shape, target) == default_budget(there, batch)


@pytest.mark.parametrize(("name", "tokens"), [("135M", 65_536), ("1B", 57_344), ("8B", 32_768)])
def test_wide_models_have_shorter_rows_on_a_gpu(name: str, tokens: int) -> None:
    """As many tokens times their width keep a GPU busy, and the last row of a run is filled up."""
    shape = shape_of(empty_network(known_shapes()[name]))
    assert budget_of(shape, Target(kind="cuda", memory=141 * 2**30, dtype="bfloat16")).batch == tokens


def test_only_the_experts_that_a_token_goes_through_are_counted() -> None:
    config = {
        "model_type": "mixtral",
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 99,
        "num_local_experts": 4,
    }
    few, all_ = (
        shape_of(empty_network({**config, "num_experts_per_tok": number, "attn_implementation": "eager"}))
        for number in (1, 4)
    )
    assert few.weights == all_.weights
    # Three products for each expert and layer.
    assert all_.linear - few.linear == 3 * (3 * 32 * 48) * 2


def test_layers_that_look_back_only_so_far_attend_to_no_more() -> None:
    config = {
        "model_type": "gemma3_text",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "vocab_size": 99,
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    }
    shape = shape_of(empty_network(config))
    (part,) = parts_of([(list(range(1, 11)), 1)])
    tally, _ = count_batches([part], BUDGET, shape.window, share=True, pack=False)
    seen = [min(place + 1, 4) + (place + 1) + min(place + 1, 4) for place in range(int(tally.fed))]
    # Queries by keys and weights by values, each two operations a unit.
    assert shape.attention_operations(tally.seen, tally.near) == 4 * 32 * sum(seen)


def test_seconds_and_bytes_are_those_of_the_profile() -> None:
    shape = Shape(
        layers=2, width=8, inner=16, vocabulary=10, queries=8, keys=4, weights=500, linear=100, head=80
    )
    device = Hardware(
        name="mine", about="", kind="cuda", memory=1, source="", rates={"float32": 1e3, "bfloat16": 4e3},
        attention=2e3, elementwise=0.5, vocabulary=0.25, written=0.125, written_seen=0.0625, narrow=8,
        uncompiled=0.75, a_pass=3, a_text=5, a_sentence=7, a_step=11,
    )  # fmt: skip
    tally = Tally(
        texts=2, run=6, fed=6, seen=12, attended=20, scored=4, passes=3, written=9, written_seen=13, steps=17
    )
    fixed = 6 * 16 * 0.5 + 4 * 10 * 0.25 + 3 * 3 + 9 * 16 * 0.125 + 13 * 16 * 0.0625 + 17 * 11
    products, attention = 2 * 100 * 6 + 2 * 80 * 4, 4 * 8 * 2 * 20
    # A width of 8 runs at half the rate; in float32 attention is as much slower as products are.
    halved = fixed + products / 2e3 + attention / 2e3 + 2 * 5
    assert device.seconds(tally, shape, "bfloat16") == pytest.approx(halved)
    assert device.seconds(tally, shape, "bfloat16", compiled=False) == pytest.approx(halved + 6 * 16 * 0.75)
    whole = fixed + products / 5e2 + attention / (2e3 / 8) + 2 * 7
    assert device.seconds(tally, shape, "float32", encoder=True) == pytest.approx(whole)
    work = Work("m", "scored", shape, "bfloat16", counted=tally, held=21)
    assert device.memory_of(work, 64, 2.0) == {
        "weights": 1000,
        "keys and values": 21 * 2 * 4 * 2,
        "rows": 12 * 16 * 2 * 6,
        "logits": 10 * 64 * 4,
    }
