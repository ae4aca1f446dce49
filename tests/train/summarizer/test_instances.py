"""Instances and losses of a summariser: one a reference, cut as the benchmark cuts, summed as a naive loop sums."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some

from ensue.backends.names import load_model
from ensue.benchmarks.squality.data import examples, read_stories
from ensue.benchmarks.squality.inputs import layout_of, room_of, truncated
from ensue.train.summarizer.instances import (
    Instance,
    SummaryObjective,
    epoch_batches,
    fixed_batches,
    held_out_figures,
    make_instances,
)
from tests.benchmarks.squality.invented import story_row, write_rows
from tests.support.tiny import save_gpt2, save_llama
from tests.support.tiny_seq2seq import save_bart

LONG = " ".join(f"On day {n} Ilse went down to the landing." for n in range(40))


@pytest.fixture(scope="module", params=["bart", "llama", "gpt2"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    save = {"bart": save_bart, "llama": save_llama, "gpt2": save_gpt2}[request.param]
    more = {"bos": True} if request.param == "llama" else {}
    return load_model(
        str(save(tmp_path_factory.mktemp("m") / request.param, max_length=320, **more)), device="cpu"
    )


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = write_rows(tmp_path_factory.mktemp("d") / "t.jsonl", story_row("1"), story_row("2", LONG))
    return list(examples(read_stories(path)))


def instances_of(model: Any, asked: list[Any]) -> list[Instance]:
    causal = model.card.kind == "causal"
    return make_instances(asked, model.tokenizer, causal=causal, max_input=200, max_output=40)


def test_every_reference_is_an_instance_of_what_the_benchmark_asks(model: Any, asked: list[Any]) -> None:
    found = instances_of(model, asked)
    assert len(found) == len(asked) * 4
    decode = model.tokenizer.decode
    room = room_of(model, 200, 40)
    for place, example in enumerate(asked):
        text = truncated(layout_of(model), example.question.text, example.story.text, room).text
        for one, reference in zip(found[4 * place : 4 * place + 4], example.question.references, strict=True):
            said = decode(one.write, skip_special_tokens=True).strip()
            assert reference.startswith(said) if one.cut else said == reference
            assert len(one.read) <= 200
            assert len(one.write) <= 40
            assert one.cut or one.write[-1] == model.tokenizer.eos_token_id
            if model.card.kind == "causal":
                plain = model.tokenizer(text, add_special_tokens=False)["input_ids"]
                # Of the three tokenizers Llama's alone puts a token first.
                first = [model.tokenizer.bos_token_id] if "llama" in model.card.source else []
                assert list(one.read) == [*first, *plain]
            else:
                assert list(one.read) == model.tokenizer(text)["input_ids"]
    assert any(one.cut for one in found)
    assert not all(one.cut for one in found)


def naive_nll(model: Any, one: Instance) -> float:
    """One instance by itself, no padding, token by token."""
    network = model.network
    with torch.inference_mode():
        if model.card.kind == "causal":
            logits = network(input_ids=torch.tensor([[*one.read, *one.write]])).logits[0]
            logits = logits[len(one.read) - 1 : -1]
        else:
            start = network.config.decoder_start_token_id
            logits = network(
                input_ids=torch.tensor([one.read]),
                decoder_input_ids=torch.tensor([[start, *one.write[:-1]]]),
            ).logits[0]
        table = torch.log_softmax(logits.double(), -1)
    return -sum(float(table[place, token]) for place, token in enumerate(one.write))


def test_the_loss_is_of_the_summary_alone_however_rows_are_padded(model: Any, asked: list[Any]) -> None:
    found = instances_of(model, asked)[::3]
    causal = model.card.kind == "causal"
    pad = model.tokenizer.pad_token_id or 0
    objective = SummaryObjective(model.network, causal=causal, pad=pad, smoothing=0.0).eval()
    expected = sum(naive_nll(model, one) for one in found)
    tokens = sum(len(one.write) for one in found)
    with torch.inference_mode():
        total, count = objective.total(found)
        assert count == tokens
        assert total == pytest.approx(expected, rel=1e-4)
        assert float(objective(found)) == pytest.approx(expected / tokens, rel=1e-4)
        figures = held_out_figures(objective, fixed_batches(found, 2))
        assert figures["dev_loss"] == pytest.approx(expected / tokens, rel=1e-4)
        objective.smoothing = 0.2
        logits, labels = objective.predict(found)
        logs = torch.log_softmax(logits, -1)
        asked_for = labels != -100
        right = -logs.gather(1, labels.clamp(min=0)[:, None])[:, 0][asked_for].mean()
        spread = -logs.mean(-1)[asked_for].mean()
        assert float(objective(found)) == pytest.approx(float(0.8 * right + 0.2 * spread), rel=1e-4)


@given(some.integers(1, 120), some.integers(1, 5), some.integers(0, 3))
def test_an_epoch_has_every_instance_once(count: int, batch: int, epoch: int) -> None:
    instances = [Instance((n,) * (n % 7 + 1), (1,)) for n in range(count)]
    found = list(epoch_batches(instances, batch, 0, epoch))
    assert sorted(one.read[0] for group in found for one in group) == list(range(count))
    assert len(found) == math.ceil(count / batch)
    assert max(map(len, found)) <= batch
    assert found == list(epoch_batches(instances, batch, 0, epoch))
    if count > 20:
        assert found != list(epoch_batches(instances, batch, 0, epoch + 1))
    assert [one for group in fixed_batches(instances, batch) for one in group] == sorted(
        instances, key=lambda one: -one.size
    )
