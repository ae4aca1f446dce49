"""Batches and heads against naive constructions: one example at a time, no padding, plain loops."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ensue.train.finetune.inputs import Inputs, Sequences, TokenRow
from ensue.train.finetune.network import Packs, TaskNetwork, attended, pooled_states
from tests.train.finetune import invented

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return invented.encoder(tmp_path_factory.mktemp("encoder"))


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=40), st.integers(1, 7)
)
def test_batches_hold_every_row_once_and_pad_it_on_the_right(lengths, size):
    numbers = iter(range(1, 10_000))
    rows = [[TokenRow([next(numbers) for _ in range(n)], [1] * n) for n in group] for group in lengths]
    flat = [row for group in rows for row in group]
    packs = Packs(Sequences(flat, [len(group) for group in rows], []), len(rows), CPU, pad=0)
    for plan in (packs.shuffled(size, random.Random(0)), packs.budgeted(20)):
        assert sorted(i for chosen in plan for i in chosen) == list(range(len(rows)))
        for chosen, batch in zip(plan, packs.batches(plan), strict=True):
            expected = [row for i in chosen for row in rows[i]]
            padded = packs.joint.gather(batch.rows, batch.width)
            width = max(len(row.ids) for row in expected)
            assert padded.ids.tolist() == [row.ids + [0] * (width - len(row.ids)) for row in expected]
            assert padded.types.tolist() == padded.mask.long().tolist()
            assert padded.mask.sum(1).tolist() == [len(row.ids) for row in expected]
            places = [(at, k) for at, i in enumerate(chosen) for k in range(len(rows[i]))]
            assert [(slot // batch.most, slot % batch.most) for slot in batch.slots.tolist()] == places


def test_batches_are_of_like_length_and_in_another_order_each_time():
    draw = random.Random(1)
    rows = [TokenRow([1] * draw.randrange(1, 100), []) for _ in range(400)]
    rows = [row._replace(types=[0] * len(row.ids)) for row in rows]
    packs = Packs(Sequences(rows, [1] * 400, []), 400, CPU, pad=0)
    plan, again = packs.shuffled(8, draw), packs.shuffled(8, draw)
    assert plan != again
    padding = sum(8 * b.width for b in packs.batches(plan)) - sum(len(row.ids) for row in rows)
    assert padding < 0.05 * sum(len(row.ids) for row in rows)


@pytest.mark.parametrize("form", ["single", "pair", "word", "coreference", "choice"])
@pytest.mark.parametrize("pool", ["cls", "mean", "last"])
def test_outputs_do_not_hang_on_the_batch(model, form, pool):
    """All examples at once give what each gives alone, taken apart by hand."""
    data = invented.task(form, train=6, dev=0)
    torch.manual_seed(0)
    options = {"joint": True, "apart": form == "pair", "dropout": 0.5}
    network = TaskNetwork(model.network.base_model, form, 2, pool=pool, **options).eval()
    if form == "pair":
        network.cosine.data.fill_(0.7)
    if form == "coreference":
        torch.nn.init.normal_(network.attention.weight)
    inputs = Inputs(model.tokenizer, 64)
    examples = data.splits["train"]
    made = inputs.sequences(form, examples, joint=True, apart=options["apart"])
    packs = Packs(made, len(examples), CPU, pad=model.tokenizer.pad_token_id)
    (batch,) = packs.batches([list(range(len(examples)))])
    with torch.inference_mode():
        got = network(packs, batch)
        for number, row in enumerate(made.joint):
            states = vectors(model, row.ids)
            pooled = {"cls": states[0], "mean": states.mean(0), "last": states[-1]}[pool]
            features = [pooled]
            if form == "word":
                features += [states[start:end].mean(0) for start, end in row.spans]
            if form == "coreference":
                features = [naive_attention(network, states[start:end]) for start, end in row.spans]
            more = 0.0
            if form == "pair":
                u, v = (
                    {"cls": s[0], "mean": s.mean(0), "last": s[-1]}[pool]
                    for s in (vectors(model, apart.ids) for apart in made.apart[2 * number : 2 * number + 2])
                )
                features += [u, v, (u - v).abs(), u * v]
                more = 0.7 * float(u @ v / (u.norm() * v.norm()))
            expected = network.classifier.weight @ torch.cat(features) + network.classifier.bias + more
            torch.testing.assert_close(got[number], expected, rtol=1e-4, atol=1e-4)


def vectors(model, ids):
    return model.network.base_model(input_ids=torch.tensor([ids]))[0][0]


def naive_attention(network, states):
    weights = [float(network.attention.weight[0] @ state + network.attention.bias) for state in states]
    powers = [torch.tensor(weight).exp() for weight in weights]
    return sum(power / sum(powers) * state for power, state in zip(powers, states, strict=True))


def test_pooling_and_spans_by_hand():
    states = torch.tensor([[[1.0], [2.0], [9.0]], [[4.0], [5.0], [6.0]]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert pooled_states(states, mask, "cls").tolist() == [[1.0], [4.0]]
    assert pooled_states(states, mask, "mean").tolist() == [[1.5], [5.0]]
    assert pooled_states(states, mask, "last").tolist() == [[2.0], [6.0]]
    spans = torch.tensor([[0, 2], [1, 2]])
    assert attended(states, torch.zeros(2, 3), spans).tolist() == [[1.5], [5.0]]
