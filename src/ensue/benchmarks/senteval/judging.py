"""From answers to items and metric rows: parts of a task, tasks, and groups, each row saying what it covers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import ROUNDS, Drawn, Numbers, mean_of_samples
from ensue.benchmarks.probing.choices import covered
from ensue.benchmarks.senteval.data import GROUPS, SentEvalSpec
from ensue.errors import EnsueError
from ensue.metrics.classification import confusion_cells, f1
from ensue.metrics.correlation import pearson, spearman
from ensue.report.results import Item, MetricRow
from ensue.stats.correlation import correlation_draws
from ensue.stats.ranges import CORRELATION
from ensue.stats.resampling import confusion_draws

WEIGHTED = {"average": "weighted"}


@dataclass(frozen=True)
class PartAnswers:
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


def items_of(answers: PartAnswers) -> Iterator[Item]:
    """Yield an item an example, enough to score it again; a correlation has no score of a single example."""
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
            asked=content_of(texts),
        )


def figures_of(answers: PartAnswers) -> dict[str, Drawn]:
    """Return the metrics of a part: accuracy (and F1 where asked for) of classes, both correlations of scores."""
    if answers.classes:
        found = {"accuracy": accuracy_figure(answers.gold, answers.given)}
        if answers.f1:
            found["f1"] = f1_figure(answers.gold, answers.given)
        return found
    n = len(answers.gold)
    if n < 2:
        raise EnsueError(f"{answers.task} has {n} example where a correlation needs two; raise --limit.")
    draws = correlation_draws(answers.given, answers.gold, rounds=ROUNDS)
    values = pearson(answers.given, answers.gold), spearman(answers.given, answers.gold)
    # A correlation that does not exist, since all answers are the same, is 0, as in SentEval.
    return {
        metric: Drawn(0.0 if math.isnan(value) else value, drawn, n, bounds=CORRELATION)
        for metric, value, drawn in zip(("pearson", "spearman"), values, draws, strict=True)
    }


def accuracy_figure(gold: Numbers, given: Numbers) -> Drawn:
    """Return the share of right answers; half an answer made up as right and half as wrong make it a beta draw."""
    n, right = len(gold), int(np.sum(gold == given))
    draws = np.random.default_rng(0).beta(right + 0.5, n - right + 0.5, size=ROUNDS)
    return Drawn(right / n, draws, n)


def f1_figure(gold: Numbers, given: Numbers) -> Drawn:
    """Return F1 of class 1 of two."""
    cells = confusion_cells(gold, given, 2)
    whole = np.bincount(cells, minlength=4).reshape(2, 2)
    return Drawn(float(f1(whole)), f1(confusion_draws(cells, 2, rounds=ROUNDS)), len(gold))


def has_correlation(answers: PartAnswers) -> bool:
    """Return whether neither the gold scores nor the answers are all the same."""
    return bool(np.ptp(answers.gold) > 0.0 and np.ptp(answers.given) > 0.0)


class TaskFigures(NamedTuple):
    """A task's figures on one split by metric; `weighted` are those of an STS year with sets weighted by size."""

    task: SentEvalSpec
    settings: Mapping[str, Any]
    figures: Mapping[str, Drawn]
    weighted: Mapping[str, Drawn]


def over_sets(task: SentEvalSpec, sets: Sequence[Mapping[str, Drawn]], at: Mapping[str, Any]) -> TaskFigures:
    """Average an STS year: the plain mean over its sets, which is reported, and one weighted by size."""
    metrics = list(sets[0])
    plain = {metric: mean_of_samples([found[metric] for found in sets]) for metric in metrics}
    sizes = [float(found[metrics[0]].n) for found in sets]
    weighted = {metric: mean_of_samples([found[metric] for found in sets], sizes) for metric in metrics}
    return TaskFigures(task, {"split": "test", **at}, plain, weighted)


def task_rows(found: TaskFigures) -> Iterator[MetricRow]:
    """Yield the rows of a whole task."""
    place = found.settings
    for metric, figure in found.figures.items():
        yield figure.row(found.task.name, metric, place)
    for metric, figure in found.weighted.items():
        yield figure.row(found.task.name, metric, {**place, **WEIGHTED})


def group_rows(
    found: Sequence[TaskFigures], asked: Sequence[SentEvalSpec], limit: int | None = None
) -> Iterator[MetricRow]:
    """Yield a row for every group of which several tasks were asked for, on each split that any of them has.

    Groups of one metric are averaged under its name; SSS mixes Pearson correlations with an accuracy, as the
    paper does, and is called `average`.
    """
    for group, members in GROUPS.items():
        wanted = [task for task in members if task in asked]
        if len(wanted) < 2:
            continue
        for split in ("dev", "test"):
            there = [one for one in found if one.task in wanted and one.settings["split"] == split]
            if there:
                yield from _group(group, wanted, there, limit)


def _group(
    group: str, wanted: Sequence[SentEvalSpec], there: Sequence[TaskFigures], limit: int | None
) -> Iterator[MetricRow]:
    names = [one.task.name for one in there]
    lacking = [task.name for task in wanted if task.name not in names]
    place = {**there[0].settings, **covered(names, lacking, limit)}
    metrics = {one.task.metric for one in there}
    main = metrics.pop() if len(metrics) == 1 else "average"
    yield mean_of_samples([one.figures[one.task.metric] for one in there]).row(group, main, place)
    if group == "USS":
        yield mean_of_samples([one.figures["spearman"] for one in there]).row(group, "spearman", place)
        for metric in ("pearson", "spearman"):
            mean = mean_of_samples([one.weighted[metric] for one in there])
            yield mean.row(group, metric, {**place, **WEIGHTED})
