"""The training loop: batches, the draw of tasks, loss weights, and the best check that is kept."""

from __future__ import annotations

import math
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ensue.benchmarks.nlu.fitting import (
    Classifier,
    Learner,
    TrainingSplit,
    draw,
    features_in,
    fit,
    like_length,
    loss_of,
    loss_weights,
    pair_features,
    predicted,
    row_features,
)
from ensue.benchmarks.nlu.framing import Ints, ask, frame
from ensue.benchmarks.nlu.training import Schedule
from tests.support.small_tasks import task


@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 1000))
def test_every_example_comes_once_a_pass(examples: int, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, examples)
    batches = list(islice(like_length(lengths, batch, rng), -(-examples // batch)))
    assert sorted(np.concatenate(batches).tolist()) == list(range(examples))
    assert max(map(len, batches)) <= batch


def test_batches_hold_examples_of_like_length() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 200, 2000)
    batches = islice(like_length(lengths, 20, rng), 100)
    assert max(int(np.ptp(lengths[batch])) for batch in batches) < 20


def test_tasks_are_drawn_in_proportion_to_their_size_and_weigh_one_on_average() -> None:
    sizes, rng = np.array([8000.0, 1500.0, 500.0]), np.random.default_rng(0)
    drawn = np.bincount([draw(sizes, rng) for _ in range(20_000)], minlength=3)
    np.testing.assert_allclose(drawn / 20_000, [0.8, 0.15, 0.05], atol=0.01)
    weights = np.array(loss_weights(sizes))
    np.testing.assert_allclose(weights * sizes, (weights * sizes)[0])
    assert float(weights @ sizes / sizes.sum()) == pytest.approx(1.0)
    assert loss_weights(np.array([321.0])) == [1.0]


def test_validation_is_due_once_a_pass_within_bounds() -> None:
    assert Schedule().checks(32) == Schedule().checks(250) == 100
    # A trial of fewer examples than any task has.
    assert Schedule().checks(31) == Schedule().checks(1) == 10
    assert Schedule().checks(128_000) == 1000
    assert Schedule().checks(10**7) == 10_000
    assert Schedule(validate_every=7).checks(10**7) == 7


def test_predictions_come_back_in_the_order_of_the_rows() -> None:
    examples = task("single", train=1300).splits["train"]
    lengths = np.random.default_rng(0).integers(1, 9, 1300)
    split = TrainingSplit(
        ask("single", examples), lambda rows: torch.from_numpy(rows[:, None] * 2.0), lengths
    )
    np.testing.assert_array_equal(predicted(split)[:, 0], np.arange(1300) * 2.0)


def learner(network: torch.nn.Linear, rising: list[float]) -> Learner:
    """A task whose dev scores are told in advance."""
    data = task("single")

    def forward(rows: Ints) -> torch.Tensor:
        return network(torch.ones(len(rows), 3))

    def split(name: str) -> TrainingSplit:
        framed = frame(data.spec, data.splits[name])
        return TrainingSplit(framed, forward, np.ones(len(framed.rows), dtype=np.int64))

    class Told(Learner):
        def score(self) -> float:
            seen.append(network.weight.detach().clone())
            return rising[len(seen) - 1]

    seen: list[torch.Tensor] = []
    made = Told(data.spec, split("train"), split("dev"))
    made.seen = seen  # type: ignore[attr-defined]
    return made


def test_the_best_check_is_kept_and_the_third_failure_ends_it() -> None:
    network = torch.nn.Linear(3, 2)
    made = learner(network, [0.1, 0.7, 0.6, 0.9, 0.2, 0.9, 1.0])
    how = fit(network, [made], Schedule(validate_every=2, batch=16), seed=0)
    assert (how.steps, how.best_step, how.best, how.stopped) == (12, 8, 0.9, True)
    assert how.scores == [0.1, 0.7, 0.6, 0.9, 0.2, 0.9]
    torch.testing.assert_close(network.weight.detach(), made.seen[3])  # type: ignore[attr-defined]
    assert not torch.equal(made.seen[3], made.seen[5])  # type: ignore[attr-defined]


def test_every_update_is_told_of_under_the_tasks_name() -> None:
    network, told = torch.nn.Linear(3, 2), []
    made = learner(network, [0.1, 0.2, 0.3])
    schedule = Schedule(validate_every=2, max_steps=5)
    fit(network, [made], schedule, seed=0, progress=lambda *state: told.append(state))
    assert told == [(step, 5, "updates of Single at most") for step in range(1, 6)]


def test_steps_are_limited() -> None:
    network = torch.nn.Linear(3, 2)
    how = fit(network, [learner(network, [0.1, 0.2, 0.3])], Schedule(validate_every=2, max_steps=5), seed=0)
    assert (how.steps, how.stopped, len(how.scores)) == (5, False, 3)


def test_a_step_of_several_tasks_is_weighed_against_their_sizes() -> None:
    """The gradient of one step, worked out by hand: of equal inputs it is the mean of chances less targets, times
    the mean size over the drawn task's own. (Adam divides by the gradient's size, so its step would not show it.)"""
    small, large = task("single", train=16, name="Small"), task("single", train=48, name="Large")
    seen: set[str] = set()
    for seed in range(12):
        network = torch.nn.Linear(3, 2)
        start = network.weight.detach().clone()
        gradients: list[torch.Tensor] = []
        network.weight.register_hook(lambda found, to=gradients: to.append(found.clone()))
        learners: list[Learner] = []
        drawn: list[str] = []
        for data in (small, large):

            def forward(
                rows: Ints, name: str = data.spec.name, net: torch.nn.Linear = network, to: list[str] = drawn
            ) -> torch.Tensor:
                to.append(name)
                return net(torch.ones(len(rows), 3))

            framed = frame(data.spec, data.splits["train"])
            split = TrainingSplit(framed, forward, np.ones(len(framed.rows), dtype=np.int64))
            learners.append(Learner(data.spec, split, split))
        bias = network.bias.detach().clone()
        fit(network, learners, Schedule(validate_every=1, max_steps=1, batch=64), seed=seed)
        data = small if drawn[0] == "Small" else large
        seen.add(drawn[0])
        gold = np.array([int(example.gold) for example in data.splits["train"]])  # type: ignore[arg-type]
        logits = start.numpy().sum(1) + bias.numpy()
        chances = np.exp(logits) / np.exp(logits).sum()
        mean = chances - np.array([(gold == 0).mean(), (gold == 1).mean()])
        weight = 32 / len(gold)  # the mean size of the two is 32
        np.testing.assert_allclose(
            gradients[0].numpy(), np.outer(mean, np.ones(3)) * weight, rtol=1e-4, atol=1e-6
        )
    assert seen == {"Small", "Large"}


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
