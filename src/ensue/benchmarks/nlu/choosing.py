"""The one number by which a training is chosen: the mean of a task's metrics on the dev set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from ensue.benchmarks.nlu.examples import Example, Prediction, TaskSpec
from ensue.errors import EnsueError
from ensue.metrics import answers as texts
from ensue.metrics import classification, correlation

_POSITIVE = ("1", "true")


def dev_score(spec: TaskSpec, examples: Sequence[Example], predictions: Mapping[str, Prediction]) -> float:
    """The unweighted mean of the task's metrics."""
    return fmean(metrics_of(spec, examples, predictions).values())


def metrics_of(
    spec: TaskSpec, examples: Sequence[Example], predictions: Mapping[str, Prediction]
) -> dict[str, float]:
    """Every metric of the task, without an interval; a correlation that is not defined counts as 0."""
    given = [predictions[example.id] for example in examples]
    if spec.form == "score":
        return {metric: _correlation(metric, examples, given) for metric in spec.metrics}
    if spec.form == "entity":
        return {metric: _over_mentions(metric, examples, given) for metric in spec.metrics}
    number = {label: place for place, label in enumerate(spec.labels)}
    gold = [number[str(example.gold)] for example in examples]
    counts = classification.confusion(gold, [number[str(one)] for one in given], len(spec.labels))
    right = [one == example.gold for one, example in zip(given, examples, strict=True)]
    groups = [example.judged_with for example in examples]
    return {
        metric: texts.exact_groups(groups, right) if metric == "em" else _of_classes(metric, spec, counts)
        for metric in spec.metrics
    }


def positive_class(spec: TaskSpec) -> int:
    """The class whose F1 counts in a task with two: 1 or true, wherever it stands."""
    return next(
        (place for place, label in enumerate(spec.labels) if label in _POSITIVE), len(spec.labels) - 1
    )


def _of_classes(metric: str, spec: TaskSpec, counts: classification.Counts) -> float:
    if metric == "accuracy":
        return float(classification.accuracy(counts))
    if metric in ("mcc", "r3"):
        return float(classification.matthews(counts))
    if metric == "f1" and len(spec.labels) > 2:
        return float(classification.macro_f1(counts))
    if metric in ("f1", "f1a"):
        return float(classification.f1(counts, positive_class(spec)))
    raise EnsueError(f"{spec.name} cannot be chosen by the metric {metric}.")


def _correlation(metric: str, examples: Sequence[Example], given: Sequence[Prediction]) -> float:
    of = {"pearson": correlation.pearson, "spearman": correlation.spearman}[metric]
    found = of([float(one) for one in given], [float(example.gold) for example in examples])  # type: ignore[arg-type]
    return found if np.isfinite(found) else 0.0


def _over_mentions(metric: str, examples: Sequence[Example], given: Sequence[Prediction]) -> float:
    of = {"f1": texts.token_f1, "em": texts.exact_match}[metric]
    pairs = zip(examples, given, strict=True)
    return fmean(texts.best_over(of, str(one), example.gold) for example, one in pairs)  # type: ignore[arg-type]
