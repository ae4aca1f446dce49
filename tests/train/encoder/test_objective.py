"""Each loss against plain loops over words and sentences, and the sum of them."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from ensue.backends.discourse.model import DiscourseNetwork, EncoderShape
from ensue.train.encoder.objective import (
    EncoderObjective,
    Ragged,
    SentenceBatch,
    bag_losses,
    class_losses,
    dev_figures,
    share_class,
)
from ensue.train.encoder.options import TERMS, EncoderOptions


def log_softmax(scores):
    top = max(scores)
    total = math.log(sum(math.exp(s - top) for s in scores)) + top
    return [s - total for s in scores]


def naive_bag(scores, words):
    """Minus the log-probability of a bag of words, a word at a time, by the number of words."""
    logs = log_softmax(scores)
    return -sum(logs[word] for word in words) / len(words)


def ragged(rows):
    table = np.zeros((len(rows), max(1, *map(len, rows))), dtype=np.int64)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return Ragged(table, np.asarray([len(row) for row in rows], dtype=np.int64))


ROWS = {
    "words": [[3, 4, 5], [6], [7, 8, 9, 3, 2]],
    "before": [[], [3, 4, 5], [6]],
    "after": [[6, 6, 0], [7, 8], []],
    "section": [[], [2, 3], [2]],
    "document": [[9], [9], []],
}
PLACES = {
    "level": [0, 2, 9],
    "sentence": [0, 1, 6],
    "sentences": [1, 3, 7],
    "paragraph": [0, 4, 39],
    "paragraphs": [40, 40, 40],
}


def make_batch():
    bags = {name: ragged(rows) for name, rows in ROWS.items()}
    places = {name: np.asarray(value, dtype=np.int64) for name, value in PLACES.items()}
    return SentenceBatch(bags.pop("words"), bags, places)


def make_objective(losses, **others):
    asked = {"data": [], "output": Path(), "steps": 1, "hidden": 6, "position_classes": 5, **others}
    options = EncoderOptions(losses=losses, **asked)
    torch.manual_seed(1)
    return EncoderObjective(DiscourseNetwork(EncoderShape(10, 4, 3)), options)


def naive_terms(objective, exact=False):
    """The mean of every term over the sentences that have its target, a sentence at a time."""
    found = {}
    with torch.no_grad():
        vectors = [
            objective.network(torch.tensor([row]), torch.tensor([len(row)]))[0] for row in ROWS["words"]
        ]
        for term, decoder in objective.decoders.items():
            losses = []
            for place, vector in enumerate(vectors):
                scores = decoder(vector).tolist()
                if term in ROWS:
                    if ROWS[term][place]:
                        losses.append(naive_bag(scores, ROWS[term][place]))
                    continue
                target = PLACES[term][place]
                if term == "level":
                    target = min(target, 6)
                elif exact:
                    scores = scores[: PLACES[f"{term}s"][place]]
                    target = min(target, 4)
                else:
                    target = math.floor(5 * target / PLACES[f"{term}s"][place])
                losses.append(-log_softmax(scores)[target])
            found[term] = sum(losses) / len(losses)
    return found


def test_bag_losses_against_loops_over_words():
    torch.manual_seed(0)
    logits = 3 * torch.randn(4, 11)
    words = [[1, 2, 2, 10], [0], [], [5, 4, 3, 2, 1]]
    targets = ragged(words)
    found = bag_losses(logits, torch.from_numpy(targets.table), torch.from_numpy(targets.lengths))
    for place, row in enumerate(words):
        expected = naive_bag(logits[place].tolist(), row) if row else 0.0
        assert float(found[place]) == pytest.approx(expected, abs=1e-5)


def test_bag_losses_equal_counts_times_log_softmax_and_so_do_gradients():
    torch.manual_seed(0)
    logits = torch.randn(6, 30, dtype=torch.double, requires_grad=True)
    targets = torch.randint(0, 30, (6, 9))
    lengths = torch.tensor([9, 1, 5, 0, 3, 9])
    counts = torch.zeros(6, 30, dtype=torch.double)
    for row in range(6):
        for word in targets[row, : lengths[row]]:
            counts[row, word] += 1
    expected = -(torch.log_softmax(logits, 1) * counts).sum(1) / lengths.clamp(min=1)
    (wanted,) = torch.autograd.grad(expected.sum(), logits)
    found = bag_losses(logits, targets, lengths)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    torch.testing.assert_close(found.double(), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(gradient, wanted, atol=1e-6, rtol=1e-5)


def test_only_positions_that_exist_can_be_right():
    logits = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    found = class_losses(logits, torch.tensor([1, 0]), torch.tensor([2, 9]))
    assert found.tolist() == pytest.approx(
        [-log_softmax([1.0, 2.0])[1], -log_softmax([1.0, 2.0, 3.0])[0]], abs=1e-6
    )


def test_a_share_is_the_part_of_the_whole_a_position_lies_in():
    for total in (1, 2, 3, 7, 20, 40, 41):
        for position in range(total):
            # As fractions compare: the last k with k / 20 <= position / total.
            expected = max(k for k in range(20) if k * total <= position * 20)
            assert int(share_class(torch.tensor(position), torch.tensor(total), 20)) == expected


@pytest.mark.parametrize("positions", ["share", "exact"])
@pytest.mark.parametrize("losses", ["nsp", "nl", "spp", "sdt", "nsp,spp,nl", "nsp=2,nl=0.5,spp=3,sdt=0.25"])
def test_the_loss_of_a_batch_is_the_weighted_sum(losses, positions):
    objective = make_objective(losses, positions=positions)
    terms = naive_terms(objective, exact=positions == "exact")
    weights = objective.options.weights
    expected = sum(weight * sum(terms[t] for t in TERMS[loss]) for loss, weight in weights.items())
    assert objective(make_batch()).item() == pytest.approx(expected, abs=1e-5)
    figures = dev_figures(objective, [make_batch()])
    assert figures.pop("dev_loss") == pytest.approx(expected, abs=1e-5)
    assert figures == pytest.approx(
        {f"dev_{loss}": sum(terms[t] for t in TERMS[loss]) for loss in weights}, abs=1e-5
    )


def test_dev_figures_of_two_batches_are_means_over_all_sentences():
    objective = make_objective("nsp,sdt")
    batch, parts = make_batch(), []

    def cut(bag, rows):
        lengths = bag.lengths[rows]
        return Ragged(bag.table[rows, : max(int(lengths.max()), 1)], lengths)

    for rows in (slice(0, 1), slice(1, 3)):
        bags = {name: cut(bag, rows) for name, bag in batch.bags.items()}
        places = {name: values[rows] for name, values in batch.places.items()}
        parts.append(SentenceBatch(cut(batch.words, rows), bags, places))
    assert dev_figures(objective, parts) == pytest.approx(dev_figures(objective, [batch]), abs=1e-5)


def test_prediction_of_before_and_after_are_separate_networks():
    objective = make_objective("nsp")
    assert set(objective.decoders) == {"before", "after"}
    first, second = (dict(objective.decoders[name].named_parameters()) for name in ("before", "after"))
    assert all(first[name] is not second[name] for name in first)


def test_half_precision_leaves_the_encoder_whole():
    objective = make_objective("nsp,nl")
    full = objective(make_batch())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = objective.network(torch.tensor([[3, 4]]), torch.tensor([2]))
        half = objective(make_batch())
    assert vectors.dtype == torch.float32
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=0.02)
