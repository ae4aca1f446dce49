"""Features and losses of classifiers against loops that spell them out."""

from __future__ import annotations

import math

import pytest
import torch

from ensue.benchmarks.nlu.heads import Classifier, features_in, loss_of, pair_features, row_features


def test_pair_features_are_both_their_distance_and_their_product() -> None:
    u, v = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 5.0]])
    assert pair_features(u, v).tolist() == [[1.0, -2.0, 3.0, 5.0, 2.0, 7.0, 3.0, -10.0]]


@pytest.mark.parametrize(("texts", "marks"), [(1, 0), (2, 0), (1, 2), (2, 2)])
def test_features_are_as_wide_as_foretold(texts: int, marks: int) -> None:
    made = row_features([torch.randn(3, 5) for _ in range(texts)], [torch.randn(3, 5) for _ in range(marks)])
    assert made.shape == (3, features_in(texts, marks, 5))
    assert Classifier(made.shape[1], 4, 7)(made).shape == (3, 4)


def test_the_loss_of_choices_is_a_softmax_within_each_example() -> None:
    generator = torch.Generator().manual_seed(1)
    owners = [4, 4, 7, 7, 7, 9]
    right = [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
    values = torch.randn(6, 1, generator=generator)
    expected = 0.0
    for owner in (4, 7, 9):
        own = [i for i in range(6) if owners[i] == owner]
        total = sum(math.exp(float(values[i, 0])) for i in own)
        expected -= sum(right[i] * math.log(math.exp(float(values[i, 0])) / total) for i in own)
    found = loss_of("choice", values, torch.tensor(right), torch.tensor(owners))
    assert float(found) == pytest.approx(expected / 3, rel=1e-5)
    shifted = loss_of("choice", values + 300.0, torch.tensor(right), torch.tensor(owners))
    assert float(shifted) == pytest.approx(expected / 3, rel=1e-3)


def test_entities_scores_and_classes_have_the_usual_losses() -> None:
    outputs, owners = torch.tensor([[0.3], [-1.2]]), torch.tensor([0, 0])
    entity = -(math.log(1 / (1 + math.exp(-0.3))) + math.log(1 - 1 / (1 + math.exp(1.2)))) / 2
    assert float(loss_of("entity", outputs, torch.tensor([1.0, 0.0]), owners)) == pytest.approx(entity)
    score = ((0.3 - 1.0) ** 2 + (-1.2 - 2.0) ** 2) / 2
    assert float(loss_of("score", outputs, torch.tensor([1.0, 2.0]), owners)) == pytest.approx(score)
    logits = torch.tensor([[1.0, 0.0, -1.0]])
    expected = -math.log(math.exp(-1.0) / (math.e + 1 + 1 / math.e))
    assert float(loss_of("pair", logits, torch.tensor([2.0]), owners[:1])) == pytest.approx(expected)
