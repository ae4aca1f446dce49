"""From answers (predicted classes, scores or similarities) to items and metric rows, each with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import ROUNDS, Drawn, Numbers
from ensue.errors import EnsueError
from ensue.metrics.classification import confusion_cells, f1
from ensue.metrics.correlation import pearson, spearman
from ensue.report.results import Item
from ensue.stats.correlation import correlation_draws
from ensue.stats.ranges import CORRELATION
from ensue.stats.resampling import confusion_draws


@dataclass(frozen=True)
class Answers:
    """What came out for one part of a task: gold and given, as class numbers or as scores.

    `classes` names the classes and is empty for scores; `given_name` is what the items call what was given.
    `settings` says which split, set and layer this is. `texts` holds a row's sentences.
    """

    task: str
    settings: dict[str, Any]
    ids: Sequence[str]
    texts: Sequence[Sequence[str]]
    gold: Numbers
    given: Numbers
    classes: tuple[str, ...] = ()
    given_name: str = "predicted"
    f1: bool = False


def items_of(answers: Answers) -> Iterator[Item]:
    """One item an example, enough to score it again; a correlation has no score of a single example."""
    rows = zip(answers.ids, answers.texts, answers.gold.tolist(), answers.given.tolist(), strict=True)
    for name, texts, gold, given in rows:
        outputs: dict[str, Any]
        if answers.classes:
            outputs = {"label": answers.classes[int(gold)], "predicted": answers.classes[int(given)]}
            scores = {"accuracy": float(gold == given)}
        else:
            outputs, scores = {"gold": gold, answers.given_name: given}, {}
        yield Item(
            id=f"{answers.task}/{name}",
            cluster=f"{answers.task}/{name}",
            task=answers.task,
            settings=answers.settings,
            scores=scores,
            outputs=outputs,
            content=content_of(texts, outputs["label"] if answers.classes else gold),
        )


def figures_of(answers: Answers) -> dict[str, Drawn]:
    """The metrics of a part: accuracy (and F1 where asked for) of classes, both correlations of scores."""
    if answers.classes:
        found = {"accuracy": accuracy_figure(answers.gold, answers.given)}
        if answers.f1:
            found["f1"] = f1_figure(answers.gold, answers.given)
        return found
    n = len(answers.gold)
    if n < 2:
        raise EnsueError(f"{answers.task} has {n} example where a correlation needs two; raise --limit.")
    draws = correlation_draws(answers.given, answers.gold, rounds=ROUNDS)
    return {
        "pearson": Drawn(
            _defined(pearson(answers.given, answers.gold)), draws.pearson, n, bounds=CORRELATION
        ),
        "spearman": Drawn(
            _defined(spearman(answers.given, answers.gold)), draws.spearman, n, bounds=CORRELATION
        ),
    }


def accuracy_figure(gold: Numbers, given: Numbers) -> Drawn:
    """The share of right answers; half an answer made up as right and half as wrong make it a beta draw."""
    n, right = len(gold), int(np.sum(gold == given))
    draws = np.random.default_rng(0).beta(right + 0.5, n - right + 0.5, size=ROUNDS)
    return Drawn(right / n, draws, n)


def f1_figure(gold: Numbers, given: Numbers) -> Drawn:
    """F1 of class 1 of two."""
    cells = confusion_cells(gold, given, 2)
    whole = np.bincount(cells, minlength=4).reshape(2, 2)
    return Drawn(float(f1(whole)), f1(confusion_draws(cells, 2, rounds=ROUNDS)), len(gold))


def has_correlation(answers: Answers) -> bool:
    """Whether neither the gold scores nor the answers are all the same."""
    return bool(np.ptp(answers.gold) > 0.0 and np.ptp(answers.given) > 0.0)


def _defined(value: float) -> float:
    """SentEval counts a correlation that does not exist, because all answers are the same, as 0."""
    return 0.0 if math.isnan(value) else value
