"""The converged protocol against scikit-learn, and the relatedness head against a plain loop."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import pearsonr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

from ensue.benchmarks.probing.converged import Regression, fit_converged, fit_ridge, scale_of
from ensue.benchmarks.probing.fitting import RELATEDNESS, fit_relatedness, spread_scores
from ensue.benchmarks.probing.rules import Data, Graded, Rules
from ensue.errors import EnsueError, RunFailed


def clouds(rows: int, size: int, classes: int, seed: int) -> Data:
    """Overlapping clouds whose columns have very different scales and one that never varies."""
    centres = np.random.default_rng(5).normal(size=(classes, size))
    generator = np.random.default_rng(seed)
    y = generator.integers(0, classes, rows)
    x = (centres[y] + 3.0 * generator.normal(size=(rows, size))) * np.logspace(-3, 2, size) + 0.7
    x[:, 3] = 0.1
    return Data(x.astype(np.float32), y.astype(np.int64))


def reference(train: Data, l2: float) -> tuple[StandardScaler, LogisticRegression]:
    scaler = StandardScaler().fit(train.x.astype(np.float64))
    model = LogisticRegression(C=1.0 / (l2 * len(train.y)), tol=1e-9, max_iter=20_000)
    return scaler, model.fit(scaler.transform(train.x.astype(np.float64)), train.y)


@pytest.mark.parametrize("classes", [2, 5])
def test_each_strength_predicts_as_scikit_learn_does(classes: int) -> None:
    train, dev, test = (clouds(rows, 12, classes, seed) for rows, seed in ((500, 1), (200, 2), (300, 3)))
    for l2 in (1e-3, 1e-1):
        ours = fit_converged(train, dev, test, classes, l2=[l2], device="cpu")
        # Two classes: scikit-learn fits one vector where we fit two, whose halves pay half the penalty.
        scaler, model = reference(train, l2 / 2 if classes == 2 else l2)
        assert (ours.dev_predictions == model.predict(scaler.transform(dev.x))).mean() > 0.99
        assert (ours.test_predictions == model.predict(scaler.transform(test.x))).mean() > 0.99
        assert ours.dev_accuracy == np.mean(ours.dev_predictions == dev.y)
        assert ours.epochs > 0


def test_weights_are_those_of_scikit_learn() -> None:
    train = clouds(400, 12, 4, 1)
    scaler, model = reference(train, 1e-2)
    regression = Regression(
        torch.from_numpy(scaler.transform(train.x.astype(np.float64))), torch.from_numpy(train.y), 4
    )
    with torch.no_grad():
        regression.solve(1e-2, 1e-8, 2000)
    np.testing.assert_allclose(regression.weights[:, :-1].numpy(), model.coef_, atol=1e-5)
    ours = regression.weights[:, -1].numpy()
    np.testing.assert_allclose(ours - ours.mean(), model.intercept_ - model.intercept_.mean(), atol=1e-5)


def test_the_strength_is_chosen_on_dev_and_the_first_best_wins() -> None:
    train, dev = clouds(120, 40, 3, 1), clouds(400, 40, 3, 2)
    strengths = [1e-5, 1e-2, 1.0]
    alone = [fit_converged(train, dev, dev, 3, l2=[l2], device="cpu").dev_accuracy for l2 in strengths]
    together = fit_converged(train, dev, dev, 3, l2=strengths, device="cpu")
    assert together.decay == strengths[int(np.argmax(alone))]
    assert together.dev_accuracy == pytest.approx(max(alone), abs=0.003)
    same = fit_converged(train, dev, dev, 3, l2=[3e-2, 3e-2 * (1 + 1e-12)], device="cpu")
    assert same.decay == 3e-2


def test_scale_leaves_constant_columns_at_zero() -> None:
    _, deviation = scale_of(clouds(300, 6, 2, 1).x)
    assert deviation[3] == 1.0
    assert (deviation[[0, 1, 2, 4, 5]] != 1.0).all()


def test_what_has_not_converged_is_said() -> None:
    train, dev = clouds(200, 12, 3, 1), clouds(50, 12, 3, 2)
    with pytest.raises(RunFailed, match="still at a gradient"):
        fit_converged(train, dev, dev, 3, l2=[1e-4], max_iterations=2, device="cpu")
    with pytest.raises(EnsueError, match="above zero"):
        fit_converged(train, dev, dev, 3, l2=[0.0], device="cpu")
    with pytest.raises(EnsueError, match="not among 0 to 1"):
        fit_converged(train, dev, dev, 2, device="cpu")


def pairs(rows: int, seed: int, lowest: float = 1.0) -> Graded:
    weights = np.random.default_rng(7).normal(size=10)
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, 10))
    raw = x @ weights / 3.0 + 0.5 * generator.normal(size=rows)
    return Graded(x.astype(np.float32), np.round(np.clip(3.0 + raw, lowest, 5.0), 1))


def spread_by_loop(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    rows = []
    for score in scores:
        row = [max(0.0, 1.0 - abs(score - whole)) for whole in range(1, 6)]
        rows.append(row)
    return np.array(rows, dtype=np.float32)


def test_scores_are_spread_on_the_whole_scores_around_them() -> None:
    scores = np.array([0.0, 0.4, 1.0, 3.6, 4.9, 5.0])
    np.testing.assert_allclose(spread_scores(scores), spread_by_loop(scores), atol=1e-6)


def naive_relatedness(
    train: Graded, dev: Graded, rules: Rules, seed: int
) -> tuple[float, int, torch.nn.Module]:
    np.random.seed(seed)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(10, 5), torch.nn.Softmax(-1))
    optimizer = torch.optim.Adam(model.parameters())
    x, targets = torch.from_numpy(train.x), torch.from_numpy(spread_by_loop(train.y))
    best, kept, at, failed, epochs = -1.0, model, 0, 0, 0
    while failed < rules.failures and epochs < rules.max_epochs:
        for _ in range(rules.check_every):
            for rows in torch.from_numpy(np.random.permutation(len(x))).split(64):
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(x[rows]), targets[rows]).backward()
                optimizer.step()
            epochs += 1
        with torch.no_grad():
            expected = model(torch.from_numpy(dev.x)).numpy() @ np.arange(1, 6)
        correlation = pearsonr(expected, dev.y)[0]
        if correlation > best:
            best, kept, at = float(correlation), copy.deepcopy(model), epochs
        else:
            failed += 1
    return best, at, kept


@pytest.mark.parametrize("lowest", [0.0, 1.0])
def test_relatedness_follows_the_plain_loop(lowest: float) -> None:
    train, dev, test = pairs(300, 1, lowest), pairs(120, 2, lowest), pairs(120, 3, lowest)
    rules = Rules(decays=(0.0,), check_every=10, max_epochs=120, failures=4)
    ours = fit_relatedness(train, dev, test, rules=rules, seed=9, device="cpu")
    best, at, model = naive_relatedness(train, dev, rules, 9)
    assert ours.dev_pearson == pytest.approx(best, abs=1e-4)
    assert ours.epochs == at
    with torch.no_grad():
        expected = model(torch.from_numpy(test.x)).numpy() @ np.arange(1, 6)
    np.testing.assert_allclose(ours.test_predictions, expected, atol=1e-3)
    assert pearsonr(ours.dev_predictions, dev.y)[0] == pytest.approx(ours.dev_pearson, abs=1e-6)


def test_relatedness_refuses_what_it_cannot_learn_from() -> None:
    train, dev = pairs(100, 1), pairs(50, 2)
    assert (RELATEDNESS.check_every, RELATEDNESS.max_epochs, RELATEDNESS.failures) == (50, 1000, 4)
    with pytest.raises(EnsueError, match="Row 0 of the training split has score 6"):
        fit_relatedness(Graded(train.x, np.full(100, 6.0)), dev, dev, device="cpu")
    with pytest.raises(EnsueError, match="has score nan"):
        fit_relatedness(train, Graded(dev.x, np.full(50, np.nan)), dev, device="cpu")
    with pytest.raises(EnsueError, match="no correlation"):
        fit_relatedness(train, Graded(dev.x, np.full(50, 2.0)), dev, device="cpu")
    with pytest.raises(EnsueError, match="dev split is empty"):
        fit_relatedness(train, Graded(dev.x[:0], dev.y[:0]), dev, device="cpu")


def test_ridge_is_scikit_learns_at_the_penalty_that_is_best_on_dev() -> None:
    generator = np.random.default_rng(5)
    weights = generator.normal(size=12)
    parts = []
    for n in (80, 40, 30):
        x = (generator.normal(size=(n, 12)) * np.arange(1, 13)).astype(np.float32)
        parts.append(Graded(x, x @ weights / 10 + generator.normal(scale=4, size=n)))
    train, dev, test = parts
    scaler = StandardScaler().fit(train.x.astype(np.float64))
    penalties = (1e-3, 0.1, 3.0)
    models = [
        Ridge(alpha=penalty * 80).fit(scaler.transform(train.x.astype(np.float64)), train.y)
        for penalty in penalties
    ]
    best = max(models, key=lambda m: pearsonr(m.predict(scaler.transform(dev.x)), dev.y).statistic)
    on_dev, on_test = fit_ridge(train, dev, test, penalties)
    np.testing.assert_allclose(on_dev, best.predict(scaler.transform(dev.x.astype(np.float64))), rtol=1e-6)
    np.testing.assert_allclose(on_test, best.predict(scaler.transform(test.x.astype(np.float64))), rtol=1e-6)
