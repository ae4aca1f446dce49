"""From a system's answers to what they are worth: checked predictions, figures with intervals, items.

A correlation with answers (or gold scores) that are all the same does not exist; it counts as 0, in the value as in
every round of the bootstrap, and a note says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import ROUNDS, Drawn, Numbers, mean_of_metrics
from ensue.benchmarks.nlu.examples import Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from ensue.metrics.answers import best_over, equal_pairs, exact_match, token_f1, whole_groups_right
from ensue.metrics.classification import Counts, accuracy, confusion_cells, f1, macro_f1, matthews
from ensue.metrics.correlation import pearson, spearman
from ensue.report.results import Item
from ensue.stats.correlation import correlation_draws
from ensue.stats.ranges import CORRELATION, range_of
from ensue.stats.resampling import MadeUp, one_hot, random_answer, sum_draws


@dataclass(frozen=True)
class JudgedSplit:
    """What one answer to one labelled split is worth: its metrics, and their unweighted mean.

    `rows` is how many examples were judged, and `instead` what they are if none of the published split's.
    """

    spec: TaskSpec
    split: str
    settings: Mapping[str, Any]
    figures: Mapping[str, Drawn]
    score: Drawn
    rows: int
    instead: str = ""
    notes: Counter[str] = field(default_factory=Counter)


def judge(data: TaskData, answered: Answered, split: str) -> JudgedSplit | None:
    """Return the metrics of the task on a split, each with its draws; None where the split has no labels."""
    if not data.labelled(split):
        return None
    spec, examples = data.spec, data.splits[split]
    given = predictions_of(data, answered, split)
    check_gold(spec, examples, split)
    figures = measure(spec, examples, given)
    score = mean_of_metrics(list(figures.values()))
    settings = dict(answered.settings)
    instead, notes = data.instead.get(split, ""), Counter[str]()
    if spec.form == "score" and min(len(set(given)), len({example.gold for example in examples})) == 1:
        notes[f"{spec.name} {split}: all answers are the same, so there is no correlation; counted as 0"] = 1
    return JudgedSplit(spec, split, settings, figures, score, len(examples), instead, notes)


def predictions_of(data: TaskData, answered: Answered, split: str) -> list[Prediction]:
    """Return the prediction for every example of a split, in order: one each, of the kind the task asks for."""
    name, examples = data.spec.name, data.splits[split]
    if split not in answered.predictions:
        raise EnsueError(f"{name}: there are no predictions for the {split} split; answer that split first.")
    given = answered.predictions[split]
    known = {example.id for example in examples}
    if len(known) < len(examples):
        twice = next(one for one, count in Counter(example.id for example in examples).items() if count > 1)
        raise EnsueError(f"{name}, {split} split: two examples have the id {twice!r}; give each its own.")
    for one in given:
        if one not in known:
            raise EnsueError(
                f"{name}, {split} split: there is a prediction for {one!r}, which is not an example of it; "
                f"predict for the ids of the data."
            )
    return [_checked(data.spec, split, example, given) for example in examples]


def items(data: TaskData, answered: Answered, split: str) -> Iterator[Item]:
    """Return an item an example of a split, labelled or not: what was asked, what was given, what it scores."""
    spec, labelled = data.spec, data.labelled(split)
    given = predictions_of(data, answered, split)
    if labelled:
        check_gold(spec, data.splits[split], split)
    chances, more = answered.chances.get(split, {}), answered.outputs.get(split, {})
    for example, one in zip(data.splits[split], given, strict=True):
        outputs: dict[str, Any] = {"predicted": one}
        if labelled:
            gold = list(example.gold) if isinstance(example.gold, tuple) else example.gold
            outputs = {"label": gold, **outputs}
        if example.id in chances:
            outputs["chances"] = [float(chance) for chance in chances[example.id]]
        if example.group:
            outputs["group"] = example.group
        outputs |= more.get(example.id, {})
        yield Item(
            id=f"{spec.name}/{split}/{example.id}",
            cluster=f"{spec.name}/{split}/{example.resampled_with}",
            task=spec.name,
            settings={"split": split, **answered.settings},
            scores=_item_scores(spec, example, one) if labelled else {},
            outputs=outputs,
            content=content_of(example.texts, example.choices, example.spans, example.gold),
        )


def _item_scores(spec: TaskSpec, example: Example, given: Prediction) -> dict[str, float]:
    """Return what a single example scores; a correlation has no such thing."""
    if spec.form == "score":
        return {}
    if spec.form == "entity":
        return text_scores(example, str(given))
    return {"accuracy": float(example.gold == given)}


def _checked(spec: TaskSpec, split: str, example: Example, given: Mapping[str, Prediction]) -> Prediction:
    place = f"{spec.name}, {split} split, example {example.id!r}"
    if example.id not in given:
        raise EnsueError(f"{place}: there is no prediction; every example needs one.")
    one = given[example.id]
    if spec.form == "score":
        if isinstance(one, bool) or not isinstance(one, int | float) or not math.isfinite(one):
            raise EnsueError(f"{place}: the prediction {one!r} is not a number; predict a finite score.")
        return float(one)
    if not isinstance(one, str) or (spec.labels and one not in spec.labels):
        wanted = f"one of {', '.join(spec.labels)}" if spec.labels else "the text of an entity"
        raise EnsueError(f"{place}: the prediction {one!r} is none of the task's; predict {wanted}.")
    return one


def check_gold(spec: TaskSpec, examples: Sequence[Example], split: str) -> None:
    """Raise unless every example of a labelled split has a gold answer of the kind the task asks for."""
    for example in examples:
        gold = example.gold
        if spec.form == "score":
            right = isinstance(gold, int | float) and math.isfinite(gold)
        elif spec.form == "entity":
            right = bool(gold) and isinstance(gold, str | tuple)
        else:
            right = gold in spec.labels
        if not right:
            place = example.where or f"{spec.name}, {split} split, example {example.id!r}"
            raise EnsueError(f"{place}: {gold!r} is not a gold answer of {spec.name}; correct the data.")


# From counts [..., classes, classes], gold by row, to a number each.
OfCounts = Callable[[Numbers], Numbers]
_OF_COUNTS: Mapping[str, Callable[[Counts], Numbers]] = {
    "accuracy": accuracy,
    "f1a": f1,
    "mcc": matthews,
    "r3": matthews,
}
# What is judged by the group: MultiRC's questions, AX-g's pairs of sentences.
OF_GROUPS = ("em", "gender_parity")


def measure(spec: TaskSpec, examples: Sequence[Example], given: Sequence[Prediction]) -> dict[str, Drawn]:
    """Return every metric of the task for the answers given to labelled examples, in their order."""
    if spec.form == "score":
        return correlations(spec, examples, [float(one) for one in given])
    if spec.form == "entity":
        return _of_texts(examples, [str(one) for one in given])
    return of_classes(spec, examples, [str(one) for one in given], spec.metrics)


def of_classes(
    spec: TaskSpec, examples: Sequence[Example], given: Sequence[str], metrics: Sequence[str]
) -> dict[str, Drawn]:
    """Return metrics of labels, and of groups of them."""
    classes = len(spec.labels)
    codes = {label: code for code, label in enumerate(spec.labels)}
    gold = [codes[str(example.gold)] for example in examples]
    cells = one_hot(confusion_cells(gold, [codes[label] for label in given], classes), classes * classes)
    by_group = {metric: _group_columns(metric, examples, given) for metric in metrics if metric in OF_GROUPS}
    table = np.hstack([cells, *by_group.values()])
    sums = _Sums(table, examples, _guess(table, classes), random_answer(cells, classes))
    found = {}
    for metric in metrics:
        if metric in by_group:
            start = classes * classes + 2 * list(by_group).index(metric)
            groups = int(by_group[metric][:, 1].sum())
            found[metric] = sums.figure(metric, _share_of_groups(start), groups)
        else:
            found[metric] = sums.figure(metric, _in_table(of_counts(metric, classes), classes), len(examples))
    return found


def of_counts(metric: str, classes: int) -> Callable[[Counts], Numbers]:
    """Return the metric of that name as a function of confusion tables; F1 of more than two classes is their mean."""
    if metric == "f1":
        return f1 if classes == 2 else macro_f1
    return _OF_COUNTS[metric]


def correlations(spec: TaskSpec, examples: Sequence[Example], given: Sequence[float]) -> dict[str, Drawn]:
    """Return both correlations with the gold scores; one that does not exist counts as 0, in every round too."""
    n = len(examples)
    if n < 2:
        raise EnsueError(f"{spec.name} has {n} example where a correlation needs two; raise --limit.")
    gold = [float(example.gold) for example in examples if isinstance(example.gold, int | float)]
    clusters = [example.resampled_with for example in examples]
    units = len(set(clusters))
    draws = correlation_draws(given, gold, clusters, rounds=ROUNDS)
    found = {}
    for metric in spec.metrics:
        of, drawn = {"pearson": (pearson, draws.pearson), "spearman": (spearman, draws.spearman)}[metric]
        value = np.nan_to_num(of(given, gold))
        spread = np.nan_to_num(drawn) if units > 1 else None
        found[metric] = Drawn(float(value), spread, n, units, CORRELATION)
    return found


def text_scores(example: Example, given: str) -> dict[str, float]:
    """Return exact match and token F1 of an entity with the best of the right surface forms."""
    right = example.gold if isinstance(example.gold, tuple) else (str(example.gold),)
    return {"em": best_over(exact_match, given, right), "f1": best_over(token_f1, given, right)}


def _of_texts(examples: Sequence[Example], given: Sequence[str]) -> dict[str, Drawn]:
    scores = [text_scores(example, one) for example, one in zip(examples, given, strict=True)]
    table = np.array([[one["f1"], one["em"], 1.0] for one in scores])
    # One made-up answer, as often right as wrong.
    sums = _Sums(table, examples, np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), np.array([0.5, 0.5]))
    return {
        "f1": sums.figure("f1", lambda sums: np.asarray(sums[..., 0] / sums[..., 2]), len(examples)),
        "em": sums.figure("em", lambda sums: np.asarray(sums[..., 1] / sums[..., 2]), len(examples)),
    }


class _Sums:
    """Per-example statistics added up, over all examples and over those of every round.

    `guess` holds the statistics of one answer not seen, by kind, and `chances` how likely each kind is.
    """

    def __init__(
        self, statistics: Numbers, examples: Sequence[Example], guess: Numbers, chances: Numbers
    ) -> None:
        clusters = [example.resampled_with for example in examples]
        self._units = len(set(clusters))
        self._whole = statistics.sum(axis=0)
        self._draws = None
        if self._units > 1:
            made_up = MadeUp(guess * (len(examples) / self._units), chances)
            self._draws = sum_draws(statistics, clusters, made_up=made_up, rounds=ROUNDS)

    def figure(self, metric: str, of_sums: OfCounts, n: int) -> Drawn:
        """Return the metric of the sums; a single cluster says nothing about the spread between clusters."""
        draws = None if self._draws is None else of_sums(self._draws)
        return Drawn(float(of_sums(self._whole)), draws, n, self._units, range_of(metric))


def _guess(table: Numbers, classes: int) -> Numbers:
    """Return the statistics of an answer that falls into each cell; its group is right where the answer is."""
    cells = np.eye(classes * classes)
    groups = table[:, classes * classes + 1 :: 2].mean(axis=0)
    right = np.eye(classes).reshape(-1, 1)
    columns = [column * share for share in groups for column in (right, np.ones_like(right))]
    return np.hstack([cells, *columns])


def _in_table(metric: OfCounts, classes: int) -> OfCounts:
    def of_sums(sums: Numbers) -> Numbers:
        return metric(sums[..., : classes * classes].reshape(*sums.shape[:-1], classes, classes))

    return of_sums


def _share_of_groups(start: int) -> OfCounts:
    def of_sums(sums: Numbers) -> Numbers:
        right, groups = sums[..., start], sums[..., start + 1]
        # A round may hold no whole pair where --limit cut some; it says nothing then.
        return np.asarray(right / np.where(groups > 0, groups, np.nan))

    return of_sums


def _group_columns(metric: str, examples: Sequence[Example], given: Sequence[str]) -> Numbers:
    """Return whether a group is right, and a one to count it by, in the row of the group's first example."""
    names = [example.judged_with for example in examples]
    if metric == "em":
        right = [example.gold == one for example, one in zip(examples, given, strict=True)]
        groups = whole_groups_right(names, right)
    else:
        groups = equal_pairs(names, given)
        if not groups:
            raise EnsueError("Gender parity needs both sentences of at least one pair; raise --limit.")
    columns = np.zeros((len(examples), 2))
    first = {name: place for place, name in reversed(list(enumerate(names)))}
    for name, good in groups.items():
        columns[first[str(name)]] = (good, 1.0)
    return columns
