"""Cross-validated classifiers, as SentEval evaluates data sets that have no dev or no test split."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ensue.benchmarks.probing.rules import CrossValidated, Data, Fitted, Rules, check_splits
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.probing.training import Member, Table

Rows = NDArray[np.int64]

# The share of the training rows that a final classifier is stopped on.
_HELD_OUT = 0.05
# Numbers in the stacked batch of one step: what stays in a processor's cache, and what fills a GPU.
_BATCH_NUMBERS = {"cpu": 2**19, "cuda": 2**26}


class _Job(NamedTuple):
    """One training set and the rows its classifiers are stopped on.

    `drawn` is how many rows the seed's generator had permuted to part the two, before the first epoch.
    """

    train: Rows
    dev: Rows
    drawn: int = 0


def stratified_folds(y: NDArray[np.int64], folds: int, seed: int) -> Rows:
    """The fold of every row: each fold has its share of every class, the rows of a class shuffled by `seed`.

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
    """Nested cross-validation: in every outer fold the decay is chosen by folds of the rest.

    With the decay chosen, a classifier is trained on the outer training rows, stopped on a random twentieth of
    them, and predicts the outer fold. `dev_accuracy` is the mean of the inner folds' best checks, so it is
    higher than what unseen rows would give; `test_accuracy` is the mean over the outer folds.
    """
    check_splits(classes, data)
    began = time.perf_counter()
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
    right = predictions == data.y
    return CrossValidated(
        float(np.mean([score for _, score in choices])),
        float(np.mean([right[outer == fold].mean() for fold in range(folds)])),
        predictions,
        outer,
        tuple(rules.decays[best] for best, _ in choices),
        time.perf_counter() - began,
    )


def fit_by_folds(
    train: Data,
    test: Data,
    classes: int,
    rules: Rules,
    *,
    folds: int = 10,
    seed: int = 0,
    device: str = "auto",
) -> Fitted:
    """For data with a test but no dev split: the decay chosen by cross-validation on `train`.

    The classifier that predicts `test` is then trained on all of `train` but a twentieth it is stopped on;
    `dev_predictions` are the out-of-fold predictions for `train` under the chosen decay.
    """
    check_splits(classes, train, test=test)
    began = time.perf_counter()
    everything = np.arange(len(train.y))
    with _training(train, classes, rules, device) as (table, where):
        from ensue.benchmarks.probing import training

        jobs = _inner_jobs(everything, train.y, folds, seed)
        trained = _train_all(table, train.y, jobs, rules, seed)
        best, accuracy = _choose(trained)
        on_dev = np.empty(len(train.y), dtype=np.int64)
        for job, members in zip(jobs, trained, strict=True):
            on_dev[job.dev] = _predict(members[best], table, job.dev)
        (final,) = _train_final(table, train.y, [everything], [best], rules, seed)
        on_test = training.predicted_classes(final, training.upload(test.x, where))
    seconds = time.perf_counter() - began
    return Fitted(rules.decays[best], final.epochs, accuracy, on_dev, on_test, seconds)


@contextmanager
def _training(data: Data, classes: int, rules: Rules, device: str) -> Generator[tuple[Table, Any]]:
    """The data on the device, and the device."""
    from ensue.benchmarks.probing import training

    outputs = len(rules.decays) * (rules.hidden or classes)
    with training.training_on(device, data.x.shape[1], outputs) as where:
        yield training.class_table(data, classes, where), where


def _inner_jobs(rows: Rows, y: NDArray[np.int64], folds: int, seed: int) -> list[_Job]:
    assigned = stratified_folds(y[rows], folds, seed)
    return [_Job(rows[assigned != fold], rows[assigned == fold]) for fold in range(folds)]


def _choose(trained: Sequence[Sequence[Member]]) -> tuple[int, float]:
    """The place of the first best decay and its mean accuracy over the folds, in hundredths of a percent."""
    scores = np.array([[member.score for member in members] for members in trained])
    means = np.round(100.0 * scores.mean(axis=0), 2)
    return int(means.argmax()), float(means.max()) / 100.0


def _train_all(
    table: Table, y: NDArray[np.int64], jobs: Sequence[_Job], rules: Rules, seed: int
) -> list[list[Member]]:
    """The members of every job; jobs with equally many rows are trained together, as many as fit."""
    from ensue.benchmarks.probing import training
    from ensue.benchmarks.probing.stack import cross_entropy_slope

    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, job in enumerate(jobs):
        alike[len(job.train), job.drawn].append(place)
    room = _BATCH_NUMBERS.get(table.x.device.type, _BATCH_NUMBERS["cpu"])
    together = 1 if rules.hidden else max(1, room // (rules.batch * table.x.shape[1]))
    found: dict[int, list[Member]] = {}
    for (_, drawn), places in alike.items():
        for start in range(0, len(places), together):
            chunk = places[start : start + together]
            devs = [_features(table, jobs[place].dev) for place in chunk]
            judge = training.accuracy_judge([y[jobs[place].dev] for place in chunk], table.x.device)
            streams = np.stack([jobs[place].train for place in chunk])
            order = np.random.RandomState(seed)
            order.permutation(drawn)
            members = training.train(table, streams, devs, judge, rules, cross_entropy_slope, seed, order)
            found.update(zip(chunk, members, strict=True))
    return [found[place] for place in range(len(jobs))]


def _train_final(
    table: Table,
    y: NDArray[np.int64],
    trains: Sequence[Rows],
    choices: Sequence[int],
    rules: Rules,
    seed: int,
) -> list[Member]:
    """One classifier for each set of rows under its chosen decay, stopped on a random part of the rows."""
    found: dict[int, Member] = {}
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


def _features(table: Table, rows: Rows) -> Any:
    import torch

    return table.x.index_select(0, torch.from_numpy(rows).to(table.x.device))


def _predict(member: Member, table: Table, rows: Rows) -> NDArray[np.int64]:
    from ensue.benchmarks.probing import training

    return training.predicted_classes(member, _features(table, rows))
