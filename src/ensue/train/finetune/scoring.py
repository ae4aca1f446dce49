"""A task's score on the dev set while it is trained: the mean of its metrics, without intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ensue.benchmarks.nlu.examples import Example, Prediction, TaskSpec
from ensue.metrics import classification as classes
from ensue.metrics.answers import best_over, exact_groups, exact_match, token_f1
from ensue.metrics.correlation import pearson, spearman


def metrics_of(
    spec: TaskSpec, examples: Sequence[Example], given: Mapping[str, Prediction]
) -> dict[str, float]:
    """Every metric of the task; a correlation that does not exist is 0."""
    answers = [given[example.id] for example in examples]
    if spec.form == "score":
        return {metric: _correlation(metric, examples, answers) for metric in spec.metrics}
    if spec.form == "entity":
        return {metric: _of_texts(metric, examples, answers) for metric in spec.metrics}
    codes = {label: code for code, label in enumerate(spec.labels)}
    gold = [codes[str(example.gold)] for example in examples]
    table = classes.confusion(gold, [codes[str(answer)] for answer in answers], len(codes))
    found = {}
    for metric in spec.metrics:
        if metric == "em":
            right = [example.gold == answer for example, answer in zip(examples, answers, strict=True)]
            found[metric] = exact_groups([example.judged_with for example in examples], right)
        elif metric == "f1" and len(codes) > 2:
            found[metric] = float(classes.macro_f1(table))
        elif metric in ("f1", "f1a"):
            found[metric] = float(classes.f1(table))
        elif metric in ("mcc", "r3"):
            found[metric] = float(classes.matthews(table))
        else:
            found[metric] = float(classes.accuracy(table))
    return found


def _correlation(metric: str, examples: Sequence[Example], answers: Sequence[Prediction]) -> float:
    gold = [float(example.gold) for example in examples if isinstance(example.gold, int | float)]
    if len(gold) < 2:
        return 0.0
    value = (pearson if metric == "pearson" else spearman)([float(a) for a in answers], gold)
    return 0.0 if math.isnan(value) else value


def _of_texts(metric: str, examples: Sequence[Example], answers: Sequence[Prediction]) -> float:
    found = []
    for example, answer in zip(examples, answers, strict=True):
        right = example.gold if isinstance(example.gold, tuple) else (str(example.gold),)
        found.append(best_over(token_f1 if metric == "f1" else exact_match, str(answer), right))
    return sum(found) / len(found)
