"""The stacked classifiers against a plain loop of the protocol in torch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

from ensue.benchmarks.probing.fitting import cross_validate, fit, fit_by_folds, stratified_folds
from ensue.benchmarks.probing.rules import DISCOEVAL, RELATIONS, Data, Rules
from ensue.benchmarks.probing.training import (
    accuracy_judge,
    class_table,
    cross_entropy_slope,
    predicted_classes,
    train,
    train_decays,
)
from ensue.errors import EnsueError


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def blobs(rows: int, size: int, classes: int, seed: int, spread: float = 4.0) -> Data:
    """Overlapping clouds of points, one a class; the clouds are the same for every seed."""
    centres = np.random.default_rng(99).normal(size=(classes, size))
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, rows)
    x = centres[y] + spread * generator.normal(size=(rows, size))
    return Data(x.astype(np.float32), y.astype(np.int64))


class Naive:
    """One classifier trained the plain way: autograd, torch's Adam, one weight decay at a time."""

    def __init__(self, size: int, classes: int, rules: Rules, decay: float, seed: int) -> None:
        np.random.seed(seed)
        torch.manual_seed(seed)
        layers: list[torch.nn.Module] = [torch.nn.Linear(size, rules.hidden or classes)]
        if rules.hidden:
            layers += [torch.nn.Sigmoid(), torch.nn.Linear(rules.hidden, classes)]
        self.model = torch.nn.Sequential(*layers)
        self.rules = rules
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=rules.learning_rate, weight_decay=decay)
        self.epochs = 0

    def epoch(self, data: Data) -> None:
        order = torch.from_numpy(np.random.permutation(len(data.y)))
        x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
        for rows in order.split(self.rules.batch):
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x[rows]), y[rows]).backward()
            self.optimizer.step()

    def predict(self, x: NDArray[np.float32]) -> NDArray[np.int64]:
        with torch.no_grad():
            classes: NDArray[np.int64] = self.model(torch.from_numpy(x)).argmax(1).numpy()
            return classes

    def fit(self, data: Data, dev: Data) -> float:
        best, failed, epochs = -1.0, 0, 0
        kept = self.model
        while failed < self.rules.failures and epochs < self.rules.max_epochs:
            for _ in range(self.rules.check_every):
                self.epoch(data)
                epochs += 1
            accuracy = float(np.mean(self.predict(dev.x) == dev.y))
            if accuracy > best:
                best, kept, self.epochs = accuracy, copy.deepcopy(self.model), epochs
            else:
                failed += 1
        self.model = kept
        return best


def naive_fit(data: Data, dev: Data, classes: int, rules: Rules, seed: int) -> tuple[float, float, Naive]:
    """The first best decay, its dev accuracy and its classifier."""
    found = []
    for decay in rules.decays:
        one = Naive(data.x.shape[1], classes, rules, decay, seed)
        found.append((decay, one.fit(data, dev), one))
    return max(found, key=lambda entry: entry[1])


@pytest.mark.parametrize("hidden", [0, 17])
def test_weights_follow_plain_torch_from_the_same_draws(hidden: int) -> None:
    data, dev = blobs(330, 23, 3, 1), blobs(90, 23, 3, 2)
    rules = Rules(hidden=hidden, check_every=3, max_epochs=3, decays=(1e-5, 1e-2, 0.3))
    table = class_table(data, 3, "cpu")
    # A judge that is always content keeps the last weights.
    (members,) = train(
        table,
        np.arange(330)[None],
        [torch.from_numpy(dev.x)],
        lambda *_: [1.0] * 3,
        rules,
        cross_entropy_slope,
        5,
    )
    for decay, member in zip(rules.decays, members, strict=True):
        one = Naive(23, 3, rules, decay, 5)
        for _ in range(3):
            one.epoch(data)
        for ours, theirs in zip(member.weights, one.model.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("hidden", [0, 12])
@pytest.mark.parametrize("seed", [0, 1, 1111])
def test_a_fit_ends_where_the_plain_loop_ends(hidden: int, seed: int) -> None:
    data, dev, test = blobs(400, 20, 4, 1), blobs(150, 20, 4, 2), blobs(150, 20, 4, 3)
    rules = Rules(hidden=hidden, max_epochs=60, decays=(1e-5, 1e-3, 1e-1), learning_rate=1e-2)
    ours = fit(data, dev, test, 4, rules, seed=seed, device="cpu")
    decay, accuracy, one = naive_fit(data, dev, 4, rules, seed)
    assert (ours.decay, ours.dev_accuracy, ours.epochs) == (decay, accuracy, one.epochs)
    assert (ours.dev_predictions == one.predict(dev.x)).all()
    assert (ours.test_predictions == one.predict(test.x)).mean() > 0.99
    assert np.mean(ours.dev_predictions == dev.y) == pytest.approx(accuracy)


def test_accuracy_lies_within_the_spread_of_the_plain_loop_over_other_seeds() -> None:
    data, dev, test = blobs(600, 30, 3, 1), blobs(300, 30, 3, 2), blobs(2000, 30, 3, 3)
    rules = Rules(max_epochs=40)
    ours = [
        float(np.mean(fit(data, dev, test, 3, rules, seed=seed, device="cpu").test_predictions == test.y))
        for seed in range(5)
    ]
    theirs = [
        float(np.mean(naive_fit(data, dev, 3, rules, seed)[2].predict(test.x) == test.y))
        for seed in range(10, 15)
    ]
    assert abs(np.mean(ours) - np.mean(theirs)) < 0.02
    assert min(ours) > 0.5  # a third is chance


def test_decays_that_stop_early_leave_the_others_as_they_are() -> None:
    data, dev = blobs(300, 10, 3, 1), blobs(100, 10, 3, 2)
    rules = Rules(check_every=1, max_epochs=80, failures=3, decays=(1e-5, 1e-1, 3.0))
    alone = [fit(data, dev, dev, 3, replace(rules, decays=(d,)), seed=3, device="cpu") for d in rules.decays]
    together = fit(data, dev, dev, 3, rules, seed=3, device="cpu")
    assert len({one.epochs for one in alone}) > 1
    best = max(alone, key=lambda one: one.dev_accuracy)
    assert together[:3] == best[:3]
    assert (together.test_predictions == together.dev_predictions).all()


@pytest.mark.usefixtures("two_threads")
def test_a_thread_a_decay_gives_what_the_stack_gives() -> None:
    data, dev = blobs(300, 10, 3, 1), blobs(100, 10, 3, 2)
    rules = Rules(hidden=8, max_epochs=20, decays=(1e-5, 1e-2, 1e-1))
    stacked = fit(data, dev, dev, 3, rules, seed=3, device="cpu")
    apart = train_decays(
        class_table(data, 3, "cpu"), torch.from_numpy(dev.x), accuracy_judge([dev.y], "cpu"), rules,
        cross_entropy_slope, 3,
    )  # fmt: skip
    best = max(apart, key=lambda member: member.score)
    assert (stacked.epochs, stacked.dev_accuracy) == (best.epochs, best.score)
    assert (predicted_classes(best, torch.from_numpy(dev.x)) == stacked.dev_predictions).all()


def test_training_never_passes_the_last_epoch() -> None:
    data, dev = blobs(128, 6, 2, 1), blobs(50, 6, 2, 2)
    seen = []

    def judge(_: int, logits: torch.Tensor) -> list[float]:
        seen.append(1)
        return [float(len(seen))]

    rules = Rules(decays=(0.0,), check_every=4, max_epochs=10)
    members = train(
        class_table(data, 2, "cpu"), np.arange(128)[None], [torch.from_numpy(dev.x)], judge, rules,
        cross_entropy_slope, 0,
    )  # fmt: skip
    assert len(seen) == 3
    assert members[0][0].epochs == 10
    assert RELATIONS.max_epochs == 15
    assert DISCOEVAL.max_epochs == 200


def test_failures_count_in_all_and_not_in_a_row() -> None:
    data, dev = blobs(64, 4, 2, 1), blobs(10, 4, 2, 2)
    scores = iter([0.5, 0.4, 0.6, 0.1, 0.7, 0.7, 0.9, 0.8])
    members = train(
        class_table(data, 2, "cpu"), np.arange(64)[None], [torch.from_numpy(dev.x)], lambda *_: [next(scores)],
        Rules(decays=(0.0,), check_every=1, failures=3), cross_entropy_slope, 0,
    )  # fmt: skip
    # The third failure is the sixth check (0.7 again): the 0.9 after it is never seen.
    assert members[0][0].score == 0.7
    assert members[0][0].epochs == 5
    assert next(scores) == 0.9


def test_the_same_seed_gives_the_same_result() -> None:
    data, dev, test = blobs(300, 16, 3, 1), blobs(100, 16, 3, 2), blobs(100, 16, 3, 3)
    for rules in (Rules(max_epochs=12), Rules(max_epochs=12, hidden=9)):
        one, two = (fit(data, dev, test, 3, rules, seed=4, device="cpu") for _ in range(2))
        assert one[:3] == two[:3]
        assert (one.test_predictions == two.test_predictions).all()


def test_folds_divide_as_scikit_learn_does() -> None:
    generator = np.random.default_rng(0)
    for classes, rows in ((2, 103), (6, 240), (3, 31)):
        y = generator.integers(0, classes, rows)
        ours = stratified_folds(y, 5, 1111)
        splitter = StratifiedKFold(5, shuffle=True, random_state=1111)
        for fold, (_, test) in enumerate(splitter.split(np.zeros((rows, 1)), y)):
            assert (np.flatnonzero(ours == fold) == test).all()


def test_nested_folds_follow_the_plain_loop() -> None:
    data = blobs(203, 12, 2, 7)
    rules = Rules(max_epochs=24, decays=(1e-5, 1e-1), learning_rate=1e-2)
    ours = cross_validate(data, 2, rules, folds=3, seed=11, device="cpu")
    splitter = StratifiedKFold(3, shuffle=True, random_state=11)
    devs, chosen = [], []
    for train_rows, test_rows in splitter.split(data.x, data.y):
        inside = Data(data.x[train_rows], data.y[train_rows])
        scores = []
        for decay in rules.decays:
            accuracies = []
            for fold_train, fold_dev in splitter.split(inside.x, inside.y):
                one = Naive(12, 2, rules, decay, 11)
                part = Data(inside.x[fold_train], inside.y[fold_train])
                accuracies.append(one.fit(part, Data(inside.x[fold_dev], inside.y[fold_dev])))
            scores.append(round(100 * float(np.mean(accuracies)), 2))
        chosen.append(rules.decays[int(np.argmax(scores))])
        devs.append(max(scores) / 100)
        final = Naive(12, 2, rules, chosen[-1], 11)
        order = np.random.permutation(len(inside.y))
        held, rest = order[: int(0.05 * len(order))], order[int(0.05 * len(order)) :]
        final.fit(Data(inside.x[rest], inside.y[rest]), Data(inside.x[held], inside.y[held]))
        predicted = final.predict(data.x[test_rows])
        assert (ours.predictions[test_rows] == predicted).mean() > 0.98
    assert ours.decays == tuple(chosen)
    assert ours.dev_accuracy == pytest.approx(np.mean(devs))


def test_folds_choose_for_data_without_dev() -> None:
    data, test = blobs(150, 12, 3, 7), blobs(100, 12, 3, 8)
    rules = Rules(max_epochs=24, decays=(1e-5, 1e-1), learning_rate=1e-2)
    ours = fit_by_folds(data, test, 3, rules, folds=4, seed=6, device="cpu")
    scores, outside = [], np.empty((2, 150), np.int64)
    for place, decay in enumerate(rules.decays):
        accuracies = []
        splitter = StratifiedKFold(4, shuffle=True, random_state=6)
        for rows, dev_rows in splitter.split(data.x, data.y):
            one = Naive(12, 3, rules, decay, 6)
            accuracies.append(
                one.fit(Data(data.x[rows], data.y[rows]), Data(data.x[dev_rows], data.y[dev_rows]))
            )
            outside[place, dev_rows] = one.predict(data.x[dev_rows])
        scores.append(round(100 * float(np.mean(accuracies)), 2))
    best = int(np.argmax(scores))
    assert (ours.decay, ours.dev_accuracy) == (rules.decays[best], pytest.approx(scores[best] / 100))
    assert (ours.dev_predictions == outside[best]).mean() > 0.99
    final = Naive(12, 3, rules, ours.decay, 6)
    order = np.random.permutation(150)
    final.fit(Data(data.x[order[7:]], data.y[order[7:]]), Data(data.x[order[:7]], data.y[order[:7]]))
    assert ours.epochs == final.epochs
    assert (ours.test_predictions == final.predict(test.x)).mean() > 0.98


def spoilt(data: Data, value: float) -> Data:
    x = data.x.copy()
    x[7, 2] = value
    return Data(x, data.y)


def test_bad_input_is_named_in_one_sentence() -> None:
    data, dev = blobs(100, 5, 3, 1), blobs(40, 5, 3, 2)
    empty = Data(np.empty((0, 5), np.float32), np.empty(0, np.int64))
    same = Data(data.x, np.zeros(100, np.int64))
    cases: list[tuple[Data, Data, int, str]] = [
        (spoilt(data, np.nan), dev, 3, "Row 7 of the training split has features that are NaN or infinite"),
        (data, spoilt(dev, -np.inf), 3, "Row 7 of the dev split"),
        (data, dev, 2, "is not among 0 to 1"),
        (Data(data.x, data.y - 1), dev, 3, "label -1"),
        (same, dev, 3, "nothing to learn"),
        (data, empty, 3, "dev split is empty"),
        (Data(data.x[:50], data.y), dev, 3, "50 rows of features but 100 labels"),
        (data, Data(dev.x[:, :4], dev.y), 3, "4 features a row, the training split 5"),
    ]
    for first, second, classes, words in cases:
        with pytest.raises(EnsueError, match=words):
            fit(first, second, second, classes, DISCOEVAL, device="cpu")
    with pytest.raises(EnsueError, match="no device 'cuda:77'"):
        fit(data, dev, dev, 3, DISCOEVAL, device="cuda:77")
    with pytest.raises(EnsueError, match="200 folds"):
        cross_validate(data, 3, DISCOEVAL, folds=200, device="cpu")
