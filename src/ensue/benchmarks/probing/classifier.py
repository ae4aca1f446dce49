"""Classifiers on frozen sentence vectors under protocol `paper`: every weight decay trained at once."""

from __future__ import annotations

import time

import numpy as np

from ensue.benchmarks.probing.folds import cross_validate, fit_by_folds
from ensue.benchmarks.probing.relatedness import fit_relatedness
from ensue.benchmarks.probing.rules import (
    COHERENCE,
    DISCOEVAL,
    RELATIONS,
    SECTIONS,
    CrossValidated,
    Data,
    Fitted,
    Graded,
    Related,
    Rules,
    check_splits,
)

__all__ = [
    "COHERENCE",
    "DISCOEVAL",
    "RELATIONS",
    "SECTIONS",
    "CrossValidated",
    "Data",
    "Fitted",
    "Graded",
    "Related",
    "Rules",
    "cross_validate",
    "fit",
    "fit_by_folds",
    "fit_relatedness",
]


def fit(
    train: Data,
    dev: Data,
    test: Data | None,
    classes: int,
    rules: Rules,
    *,
    seed: int = 0,
    device: str = "auto",
) -> Fitted:
    """Train on `train`, choose weight decay and epochs on `dev`, predict `dev` and `test`.

    The first of equally good weight decays is taken. The original trains the chosen one a second time from
    the same seed, which draws the same start and the same batches again; here the first run's best checkpoint
    is used instead.
    """
    check_splits(classes, train, dev=dev, test=test)
    began = time.perf_counter()
    from ensue.benchmarks.probing import training
    from ensue.benchmarks.probing.stack import cross_entropy_slope

    outputs = len(rules.decays) * (rules.hidden or classes)
    with training.training_on(device, train.x.shape[1], outputs) as where:
        table, dev_x = training.class_table(train, classes, where), training.upload(dev.x, where)
        judge = training.accuracy_judge([dev.y], where)
        members = training.train_decays(table, dev_x, judge, rules, cross_entropy_slope, seed)
        best = max(range(len(members)), key=lambda place: members[place].score)
        kept = members[best]
        on_dev = training.predicted_classes(kept, dev_x)
        on_test = np.empty(0, dtype=np.int64)
        if test is not None:
            on_test = training.predicted_classes(kept, training.upload(test.x, where))
    seconds = time.perf_counter() - began
    return Fitted(rules.decays[best], kept.epochs, kept.score, on_dev, on_test, seconds)
