"""The contrastive loss against its formula written as loops, and the network's attention against its definition."""

import math
from dataclasses import replace

import pytest
import torch
from transformers import BertConfig, BertModel

from ensue.backends.suffixlm.model import SegmentBlock, Shape, SuffixLM, bare_encoder, truncate_encoder
from ensue.train.suffixlm.objective import Negatives, WindowBatch, contrastive_loss

SHAPE = Shape(dimension=16, inner=32, heads=4, layers=2, dropout=0.0, max_segments=12)


def encoder(layers=3):
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50, hidden_size=8, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=16
    )
    found = BertModel(config).eval()
    bare_encoder(found)
    return found


def naive_loss(predicted, vectors, rows, works, openings, negatives, ahead, weight):
    """Minus log of exp(z^·z+) over the sum of exp(z^·z) of the true segment and each negative, term by term."""
    windows, length, _ = vectors.shape
    total = weights = 0.0
    for w in range(windows):
        real = sum(row >= 0 for row in rows[w])
        for i in range(real - 1):
            j = min(i + ahead[w][i], real - 1)
            following = rows[w][i] + 1
            terms = []
            for v in range(windows):
                for k in range(length):
                    row, same = rows[v][k], works[v][k] == works[w][i]
                    true = (v, k) == (w, j)
                    if row < 0:
                        continue
                    if not true and not same and not negatives.others:
                        continue
                    if not true and same and row < following and not negatives.earlier:
                        continue
                    if (
                        not true
                        and same
                        and negatives.spare
                        and following <= row <= following + negatives.spare
                    ):
                        continue
                    terms.append(math.exp(float(predicted[w, i] @ vectors[v, k])))
            share = weight if openings[w, j] else 1.0
            total -= share * (float(predicted[w, i] @ vectors[w, j]) - math.log(sum(terms)))
            weights += share
    return total / weights


@pytest.mark.parametrize("weight", [1.0, 5.0])
@pytest.mark.parametrize("horizon", [1, 3])
@pytest.mark.parametrize(
    "negatives",
    [
        Negatives(),
        Negatives(True, False, 0),
        Negatives(True, True, 2),
        Negatives(False, False, 3),
        Negatives(False),
    ],
)
def test_the_loss_is_the_formula(weight, horizon, negatives):
    g = torch.Generator().manual_seed(1)
    predicted, vectors = (torch.randn(3, 5, 6, generator=g) for _ in range(2))
    rows = torch.tensor([[3, 4, 5, 6, 7], [40, 41, 42, -1, -1], [10, 11, 12, 13, 14]])
    works = torch.tensor([[0] * 5, [1, 1, 1, -1, -1], [0] * 5])
    openings = torch.zeros(3, 5, dtype=torch.bool)
    openings[0, 2] = openings[2, 4] = True
    ahead = torch.randint(1, horizon + 1, (3, 5), generator=g)
    places = WindowBatch(rows, works, openings)
    found = contrastive_loss(predicted, vectors, places, negatives, ahead=ahead, break_weight=weight)
    expected = naive_loss(
        predicted, vectors, rows.tolist(), works.tolist(), openings, negatives, ahead.tolist(), weight
    )
    assert float(found) == pytest.approx(expected, abs=1e-5)


def test_without_a_horizon_the_next_segment_is_the_true_one():
    g = torch.Generator().manual_seed(2)
    predicted, vectors = (torch.randn(2, 4, 6, generator=g) for _ in range(2))
    rows = torch.tensor([[0, 1, 2, 3], [7, 8, -1, -1]])
    places = WindowBatch(rows, torch.where(rows < 0, -1, rows // 7), torch.zeros(2, 4, dtype=torch.bool))
    scores = predicted.reshape(8, 6) @ vectors.reshape(8, 6)[:6].T
    expected = torch.nn.functional.cross_entropy(scores[[0, 1, 2, 4]], torch.tensor([1, 2, 3, 5]))
    assert float(contrastive_loss(predicted, vectors, places)) == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize("attention", ["softmax", "average"])
def test_a_prediction_never_depends_on_later_segments(attention):
    torch.manual_seed(0)
    network = SuffixLM(encoder(), replace(SHAPE, attention=attention)).eval()
    one, other = torch.randn(2, 7, 16), torch.randn(2, 7, 16)
    other[:, :4] = one[:, :4]
    with torch.no_grad():
        assert torch.allclose(network(one)[:, :4], network(other)[:, :4], atol=1e-6)
        assert not torch.allclose(network(one)[:, 4:], network(other)[:, 4:], atol=1e-3)


def test_average_attention_is_the_mean_of_what_came_before():
    torch.manual_seed(0)
    block = SegmentBlock(replace(SHAPE, attention="average")).eval()
    states = torch.randn(1, 5, 16)
    visible = torch.tril(torch.ones(5, 5, dtype=torch.bool))[None]
    with torch.no_grad():
        found = block._attention(states, visible)
        values = block.attend(states)
        for place in range(5):
            assert torch.allclose(found[0, place], values[0, : place + 1].mean(0), atol=1e-6)


def test_softmax_attention_is_that_of_torch():
    torch.manual_seed(0)
    block = SegmentBlock(SHAPE).eval()
    states = torch.randn(2, 5, 16)
    visible = torch.tril(torch.ones(5, 5, dtype=torch.bool))[None].expand(2, -1, -1)
    reference = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    with torch.no_grad():
        reference.in_proj_weight.copy_(block.attend.weight)
        reference.in_proj_bias.copy_(block.attend.bias)
        reference.out_proj.weight.copy_(torch.eye(16))
        reference.out_proj.bias.zero_()
        expected, _ = reference(states, states, states, attn_mask=~visible[0])
        assert torch.allclose(block._attention(states, visible), expected, atol=1e-5)


def test_a_dropped_segment_is_invisible_to_all_but_itself():
    torch.manual_seed(0)
    network = SuffixLM(encoder(), SHAPE).eval()
    one = torch.randn(1, 6, 16)
    other = one.clone()
    other[:, 2] = torch.randn(1, 16)
    seen = torch.ones(1, 6, dtype=torch.bool)
    seen[0, 2] = False
    with torch.no_grad():
        before, after = network(one, seen)[0], network(other, seen)[0]
    same = [bool(torch.allclose(before[i], after[i], atol=1e-6)) for i in range(6)]
    assert same == [True, True, False, True, True, True]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_segment_vectors_leave_padding_out(pooling):
    network = SuffixLM(encoder(), replace(SHAPE, pooling=pooling)).eval()
    ids = torch.tensor([[1, 2, 3, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 0, 0]])
    with torch.no_grad():
        states = network.encoder(input_ids=ids[:, :3])[0][0]
        expected = states[0] if pooling == "cls" else states.mean(0)
        assert torch.allclose(network.encode(ids, mask)[0], expected, atol=1e-5)


def test_a_truncated_encoder_is_the_embeddings_and_the_first_layers():
    whole = encoder(4)
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        expected = whole.embeddings(input_ids=ids)
        for layer in (whole.encoder.layer[0], whole.encoder.layer[1]):
            expected = layer(expected)
            expected = expected[0] if isinstance(expected, tuple) else expected
        truncate_encoder(whole, 2)
        assert whole.config.num_hidden_layers == 2
        assert torch.allclose(whole(input_ids=ids)[0], expected, atol=1e-6)


def test_training_starts_from_the_guess_that_what_follows_is_like_what_came_last():
    torch.manual_seed(0)
    network = SuffixLM(encoder(), SHAPE).eval()
    vectors = torch.randn(40, 3, 16)
    with torch.no_grad():
        scores = network(vectors)[:, -1] @ vectors[:, -1].T
    assert float((scores.argmax(1) == torch.arange(40)).float().mean()) > 0.8
