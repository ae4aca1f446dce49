"""Fitting classifiers under protocol `paper`: on given splits, by folds, and for graded relatedness."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ensue.benchmarks.probing import training
from ensue.benchmarks.probing.rules import (
    CrossValidated,
    Data,
    FittedClassifier,
    Graded,
    Related,
    Rules,
    check_features,
    check_splits,
)
from ensue.errors import EnsueError

Rows = NDArray[np.int64]

# As the original: no weight decay, dev checked every 50 epochs, stopped at the fourth failure in all.
RELATEDNESS = Rules(decays=(0.0,), check_every=50, max_epochs=1000, failures=4)
# The highest of the whole scores of relatedness.
_HIGHEST = 5
# The share of the training rows that a final classifier is stopped on.
_HELD_OUT = 0.05
# Numbers in the stacked batch of one step: what stays in a processor's cache, and what fills a GPU.
_BATCH_NUMBERS = {"cpu": 2**19, "cuda": 2**26}


def fit(
    train: Data,
    dev: Data,
    test: Data,
    classes: int,
    rules: Rules,
    *,
    seed: int = 0,
    device: str = "auto",
) -> FittedClassifier:
    """Train on `train`, choose weight decay and epochs on `dev`, predict `dev` and `test`.

    The first of equally good weight decays is taken. The original trains the chosen one a second time from
    the same seed, which draws the same start and the same batches again; here the first run's best checkpoint
    is used instead.
    """
    check_splits(classes, train, dev=dev, test=test)
    began = time.perf_counter()
    with _training(train, classes, rules, device) as (table, where):
        dev_x = training.upload(dev.x, where)
        judge = training.accuracy_judge([dev.y], where)
        members = training.train_decays(table, dev_x, judge, rules, training.cross_entropy_slope, seed)
        best = max(range(len(members)), key=lambda place: members[place].score)
        kept = members[best]
        on_dev = training.predicted_classes(kept, dev_x)
        on_test = training.predicted_classes(kept, training.upload(test.x, where))
    seconds = time.perf_counter() - began
    return FittedClassifier(rules.decays[best], kept.epochs, kept.score, on_dev, on_test, seconds)


class _Job(NamedTuple):
    """One training set and the rows its classifiers are stopped on.

    `drawn` is how many rows the seed's generator had permuted to part the two, before the first epoch.
    """

    train: Rows
    dev: Rows
    drawn: int = 0


def stratified_folds(y: NDArray[np.int64], folds: int, seed: int) -> Rows:
    """Return the fold of every row: each fold has its share of every class, the rows of a class shuffled by `seed`.

    The same division as scikit-learn's StratifiedKFold(shuffle=True), on which the original builds.
    """
    if folds < 2 or folds > np.bincount(y).max():
        raise EnsueError(
            f"{folds} folds need at least as many rows in the largest class, and two folds or more."
        )
    generator = np.random.RandomState(seed)
    first_seen = np.sort(np.unique(y, return_index=True)[1])
    rank = np.empty(int(y.max()) + 1, dtype=np.int64)
    rank[y[first_seen]] = np.arange(len(first_seen))
    # Dealing the sorted labels round the folds says how many of each class every fold gets.
    dealt = np.sort(rank[y])
    assigned = np.empty(len(y), dtype=np.int64)
    for label in range(len(first_seen)):
        places = np.sort(np.flatnonzero(dealt == label) % folds)
        generator.shuffle(places)
        assigned[rank[y] == label] = places
    return assigned


def cross_validate(
    data: Data, classes: int, rules: Rules, *, folds: int = 10, seed: int = 0, device: str = "auto"
) -> CrossValidated:
    """Cross-validate in nested folds: in every outer fold the decay is chosen by folds of the rest.

    With the decay chosen, a classifier is trained on the outer training rows, stopped on a random twentieth of
    them, and predicts the outer fold. `dev_accuracy` is the mean of the inner folds' best checks, so it is
    higher than what unseen rows would give.
    """
    check_splits(classes, data)
    outer = stratified_folds(data.y, folds, seed)
    trains = [np.flatnonzero(outer != fold) for fold in range(folds)]
    jobs = [job for rows in trains for job in _inner_jobs(rows, data.y, folds, seed)]
    with _training(data, classes, rules, device) as (table, _):
        trained = _train_all(table, data.y, jobs, rules, seed)
        choices = [_choose(trained[k * folds : (k + 1) * folds]) for k in range(folds)]
        finals = _train_final(table, data.y, trains, [best for best, _ in choices], rules, seed)
        predictions = np.empty(len(data.y), dtype=np.int64)
        for fold, member in enumerate(finals):
            rows = np.flatnonzero(outer == fold)
            predictions[rows] = _predict(member, table, rows)
    accuracy = float(np.mean([score for _, score in choices]))
    return CrossValidated(accuracy, predictions, tuple(rules.decays[best] for best, _ in choices))


def fit_by_folds(
    train: Data,
    test: Data,
    classes: int,
    rules: Rules,
    *,
    folds: int = 10,
    seed: int = 0,
    device: str = "auto",
) -> FittedClassifier:
    """Train for data with a test but no dev split: the decay is chosen by cross-validation on `train`.

    The classifier that predicts `test` is then trained on all of `train` but a twentieth it is stopped on;
    `dev_predictions` are the out-of-fold predictions for `train` under the chosen decay.
    """
    check_splits(classes, train, test=test)
    began = time.perf_counter()
    everything = np.arange(len(train.y))
    with _training(train, classes, rules, device) as (table, where):
        jobs = _inner_jobs(everything, train.y, folds, seed)
        trained = _train_all(table, train.y, jobs, rules, seed)
        best, accuracy = _choose(trained)
        on_dev = np.empty(len(train.y), dtype=np.int64)
        for job, members in zip(jobs, trained, strict=True):
            on_dev[job.dev] = _predict(members[best], table, job.dev)
        (final,) = _train_final(table, train.y, [everything], [best], rules, seed)
        on_test = training.predicted_classes(final, training.upload(test.x, where))
    seconds = time.perf_counter() - began
    return FittedClassifier(rules.decays[best], final.epochs, accuracy, on_dev, on_test, seconds)


@contextmanager
def _training(
    data: Data, classes: int, rules: Rules, device: str
) -> Generator[tuple[training.FeatureTable, Any]]:
    """Yield the data on the device, and the device."""
    outputs = len(rules.decays) * (rules.hidden or classes)
    with training.training_on(device, data.x.shape[1], outputs) as where:
        yield training.class_table(data, classes, where), where


def _inner_jobs(rows: Rows, y: NDArray[np.int64], folds: int, seed: int) -> list[_Job]:
    assigned = stratified_folds(y[rows], folds, seed)
    return [_Job(rows[assigned != fold], rows[assigned == fold]) for fold in range(folds)]


def _choose(trained: Sequence[Sequence[training.StackMember]]) -> tuple[int, float]:
    """Return the place of the first best decay and its mean accuracy over the folds, in hundredths of a percent."""
    scores = np.array([[member.score for member in members] for members in trained])
    means = np.round(100.0 * scores.mean(axis=0), 2)
    return int(means.argmax()), float(means.max()) / 100.0


def _train_all(
    table: training.FeatureTable, y: NDArray[np.int64], jobs: Sequence[_Job], rules: Rules, seed: int
) -> list[list[training.StackMember]]:
    """Return the members of every job; jobs with equally many rows are trained together, as many as fit."""
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        alike[len(job.train), job.drawn].append(place)
    room = _BATCH_NUMBERS.get(table.x.device.type, _BATCH_NUMBERS["cpu"])
    together = 1 if rules.hidden else max(1, room // (rules.batch * table.x.shape[1]))
    found: dict[int, list[training.StackMember]] = {}
    for (_, drawn), places in alike.items():
        for start in range(0, len(places), together):
            chunk = places[start : start + together]
            devs = [_features(table, jobs[place].dev) for place in chunk]
            judge = training.accuracy_judge([y[jobs[place].dev] for place in chunk], table.x.device)
            streams = np.stack([jobs[place].train for place in chunk])
            order = np.random.RandomState(seed)
            order.permutation(drawn)
            members = training.train(
                table, streams, devs, judge, rules, training.cross_entropy_slope, seed, order
            )
            found.update(zip(chunk, members, strict=True))
    return [found[place] for place in range(len(jobs))]


def _train_final(
    table: training.FeatureTable,
    y: NDArray[np.int64],
    trains: Sequence[Rows],
    choices: Sequence[int],
    rules: Rules,
    seed: int,
) -> list[training.StackMember]:
    """Train one classifier for each set of rows under its chosen decay, stopped on a random part of the rows."""
    found: dict[int, training.StackMember] = {}
    for choice in sorted(set(choices)):
        places = [place for place, chosen in enumerate(choices) if chosen == choice]
        jobs = [_held_out(trains[place], seed) for place in places]
        trained = _train_all(table, y, jobs, replace(rules, decays=(rules.decays[choice],)), seed)
        found.update(zip(places, (members[0] for members in trained), strict=True))
    return [found[place] for place in range(len(trains))]


def _held_out(rows: Rows, seed: int) -> _Job:
    shuffled = rows[np.random.RandomState(seed).permutation(len(rows))]
    held = int(_HELD_OUT * len(rows))
    if held == 0:
        raise EnsueError(f"{len(rows)} rows are too few to hold a twentieth of them out; give at least 20.")
    return _Job(shuffled[held:], shuffled[:held], drawn=len(rows))


def _features(table: training.FeatureTable, rows: Rows) -> Any:
    return table.x.index_select(0, torch.from_numpy(rows).to(table.x.device))


def _predict(member: training.StackMember, table: training.FeatureTable, rows: Rows) -> NDArray[np.int64]:
    return training.predicted_classes(member, _features(table, rows))


def spread_scores(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return each score as probabilities of the whole scores from 1 on, on the two around it.

    >>> spread_scores(np.array([3.25])).tolist()
    [[0.0, 0.0, 0.75, 0.25, 0.0]]

    Below 1 there is no lower whole score and, as in the original, its share is left out.
    """
    below = np.floor(scores).astype(np.int64)
    above = scores - below
    # One column for the score 0, which is cut off again, and one for what lies above the highest.
    spread = np.zeros((len(scores), _HIGHEST + 2))
    places = np.arange(len(scores))
    spread[places, below] = 1.0 - above
    spread[places, below + 1] += above
    return spread[:, 1 : _HIGHEST + 1].astype(np.float32)


def pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return Pearson's correlation; NaN where either side does not vary."""
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0.0 else float("nan")


def fit_relatedness(
    train: Graded,
    dev: Graded,
    test: Graded,
    *,
    rules: Rules = RELATEDNESS,
    seed: int = 0,
    device: str = "auto",
) -> Related:
    """Train the relatedness head of SICK-R and STS-B: a softmax over whole scores whose expected value is the answer.

    The epoch with the best Pearson on `dev` is kept and predicts `dev` and `test`. The loss is the mean squared
    difference between the softmax and the spread gold score.
    """
    if len(rules.decays) != 1 or rules.hidden:
        raise EnsueError("The relatedness head has no hidden layer and one weight decay.")
    for name, data in (("training", train), ("dev", dev), ("test", test)):
        check_features(name, data.x, len(data.y), train.x.shape[1] if train.x.ndim == 2 else None)
        wrong = ~((data.y >= 0.0) & (data.y <= _HIGHEST))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise EnsueError(
                f"Row {row} of the {name} split has score {data.y[row]}, not one from 0 to {_HIGHEST}."
            )
    if np.ptp(dev.y) == 0.0:
        raise EnsueError("All gold scores of the dev split are the same: no correlation can be computed.")
    with training.training_on(device, train.x.shape[1], _HIGHEST) as where:
        targets = torch.from_numpy(spread_scores(train.y)).to(where)
        table = training.FeatureTable(training.upload(train.x, where), targets)
        dev_x, test_x = (training.upload(part.x, where) for part in (dev, test))

        def judge(_: int, logits: Any) -> Sequence[float]:
            return [pearson(_expected(logits[:, 0]), dev.y)]

        rows = np.arange(len(train.y))[None]
        ((kept,),) = training.train(table, rows, [dev_x], judge, rules, training.squared_slope, seed)
        if not kept.weights:
            raise EnsueError("The relatedness head gave all dev pairs the same score: check the features.")
        on_dev, on_test = (_expected(training.predict(kept, x)) for x in (dev_x, test_x))
    return Related(kept.epochs, kept.score, on_dev, on_test)


def _expected(logits: Any) -> NDArray[np.float64]:
    chances = logits.softmax(-1).double().cpu().numpy()
    expected: NDArray[np.float64] = chances @ np.arange(1.0, chances.shape[1] + 1.0)
    return expected
