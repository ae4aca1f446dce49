"""From a system's answers to what they are worth: checked predictions, figures with intervals, items.

A correlation with answers (or gold scores) that are all the same does not exist; it counts as 0, in the value as in
every round of the bootstrap, and a note says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ensue.benchmarks.base import content_of
from ensue.benchmarks.drawn import Drawn, mean_of_metrics
from ensue.benchmarks.nlu.examples import Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.measuring import measure, text_scores
from ensue.benchmarks.nlu.systems import Answered
from ensue.errors import EnsueError
from ensue.report.results import Item


@dataclass(frozen=True)
class Judged:
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


def judge(data: TaskData, answered: Answered, split: str) -> Judged | None:
    """The metrics of the task on a split, each with its draws; None where the split has no labels."""
    if not data.labelled(split):
        return None
    spec, examples = data.spec, data.splits[split]
    given = predictions_of(data, answered, split)
    check_gold(spec, examples, split)
    figures = measure(spec, examples, given)
    score = mean_of_metrics(list(figures.values()))
    settings = dict(answered.settings)
    notes = _notes(spec, split, examples, given)
    return Judged(spec, split, settings, figures, score, len(examples), data.instead.get(split, ""), notes)


def predictions_of(data: TaskData, answered: Answered, split: str) -> list[Prediction]:
    """The prediction for every example of a split, in order; exactly one each, of the kind the task asks for."""
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
                f"{name}, {split} split: there is a prediction for {one!r}, which is no example of it; "
                f"predict for the ids of the data."
            )
    return [_checked(data.spec, split, example, given) for example in examples]


def items(data: TaskData, answered: Answered, split: str) -> Iterator[Item]:
    """One item an example of a split, labelled or not: what was asked for, what was given, and what it scores."""
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
    """What a single example scores; a correlation has no such thing."""
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


def _notes(
    spec: TaskSpec, split: str, examples: Sequence[Example], given: Sequence[Prediction]
) -> Counter[str]:
    notes: Counter[str] = Counter()
    if spec.form == "score" and min(len(set(given)), len({example.gold for example in examples})) == 1:
        notes[f"{spec.name} {split}: all answers are the same, so there is no correlation; counted as 0"] = 1
    return notes
