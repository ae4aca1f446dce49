"""People as a system of GLUE and SuperGLUE: an export of kind `classification` (`--model human:EXPORT`).

The majority of an example's annotators is its answer, as SuperGLUE's human baselines are; a score is their mean, and
of names that tie the first in the passage is taken. `METRIC_each` is the mean over annotators of what each is worth
alone, which is how GLUE's diagnostic was measured (R3). Examples that nobody labelled are left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NoReturn

from ensue.benchmarks.answered import kappa_rows
from ensue.benchmarks.base import RunContext, Setting, content_of
from ensue.benchmarks.nlu.examples import Example, Prediction, TaskData, TaskSpec
from ensue.benchmarks.nlu.judging import judge
from ensue.benchmarks.nlu.scores import EACH, KAPPA
from ensue.benchmarks.nlu.submissions.people import SCALE, SCALE_TASK, annotated_part, majority
from ensue.benchmarks.nlu.systems import Answered, Settings
from ensue.benchmarks.people.agreement import Judgment
from ensue.benchmarks.people.export import Export
from ensue.benchmarks.people.human import people_of
from ensue.errors import EnsueError
from ensue.models.protocols import Model
from ensue.report.figure import Figure
from ensue.report.results import MetricRow
from ensue.stats.clustered import clustered_interval
from ensue.stats.ranges import range_of

KIND = "classification"
_FEW = 5  # examples: somebody who labelled fewer has no figure of their own
# What each annotator said of each example: by example, then annotator.
Votes = Mapping[str, Mapping[str, Prediction]]


class Human:
    """The system of mode `human`."""

    settings: Mapping[str, Setting] = {}

    def answer(
        self, model: Model, tasks: Sequence[TaskData], settings: Settings, seed: int, context: RunContext
    ) -> Iterator[Answered]:
        export = _export(model)
        for data in tasks:
            split = _split(export, data.spec)
            if split is None:
                continue
            votes = votes_of(export, data, split)
            kept = {example.id: example for example in data.splits[split] if example.id in votes}
            yield Answered(
                data.spec.name,
                {split: {id: vote(data.spec, kept[id], list(votes[id].values())) for id in kept}},
                outputs={split: {id: {"annotators": dict(votes[id])} for id in kept}},
            )

    def signature(self, model: Model, settings: Settings) -> str:
        people = {one.annotator for one in _export(model).answers()}
        return f"export:{model.card.mark} people:{len(people)} vote:majority"


system = Human()


def annotated(model: Model, tasks: Sequence[TaskData]) -> list[TaskData]:
    """Return the tasks with the split that people answered cut down to what they labelled."""
    export = _export(model)
    found = []
    for data in tasks:
        split = _split(export, data.spec)
        if split is not None:
            votes = votes_of(export, data, split)
            said = Answered(data.spec.name, {split: dict.fromkeys(votes, "")})
            left = len(data.splits[split]) - len(votes)
            data = annotated_part(data, said, split)
            if left:
                data = replace(data, notes=data.notes + Counter({f"{split}: examples nobody labelled": left}))
        found.append(data)
    return found


def each_rows(model: Model, tasks: Sequence[TaskData]) -> list[MetricRow]:
    """Return what annotators are worth one by one, on average, and how far they agree (Fleiss' kappa)."""
    export = _export(model)
    rows: list[MetricRow] = []
    for data in tasks:
        split = _split(export, data.spec)
        if split is None:
            continue
        votes = votes_of(export, data, split)
        rows += _means(data, split, votes)
        if data.spec.form != "score":
            judgments = [
                Judgment(example.resampled_with, example.id, name, str(value))
                for example in data.splits[split]
                for name, value in votes.get(example.id, {}).items()
            ]
            rows += kappa_rows(judgments, data.spec.name, {"split": split}, KAPPA)
    return rows


def _means(data: TaskData, split: str, votes: Votes) -> Iterator[MetricRow]:
    """Yield the mean of each metric over annotators, each judged on what they labelled whole groups of."""
    if not data.labelled(split):
        return
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(name for given in votes.values() for name in given):
        own = {id: given[name] for id, given in votes.items() if name in given}
        groups: dict[str, bool] = {}
        for example in data.splits[split]:
            groups[example.judged_with] = groups.get(example.judged_with, True) and example.id in own
        kept = [example for example in data.splits[split] if groups[example.judged_with]]
        if len(kept) < _FEW:
            continue
        alone = replace(data, splits={split: kept})
        said = Answered(data.spec.name, {split: {example.id: own[example.id] for example in kept}})
        judged = judge(alone, said, split)
        for metric, figure in judged.figures.items() if judged else ():
            found.setdefault(metric, {})[name] = figure.value
    for metric, values in found.items():
        interval = clustered_interval(list(values.values()), list(values), bounds=range_of(metric))
        settings = {"split": split, "annotators": len(values)}
        yield Figure(*interval).row(data.spec.name, f"{metric}{EACH}", settings)


def votes_of(export: Export, data: TaskData, split: str) -> dict[str, dict[str, Prediction]]:
    """Return what each annotator said of each example of a split; refuse examples other than people read."""
    known = {example.id: example for example in data.splits.get(split, [])}
    found: dict[str, dict[str, Prediction]] = {}
    for one in export.answers():
        fields: Mapping[str, str] = one.key["examples"]
        unit = [known.get(id) for id in fields.values()]
        there = [example for example in unit if example is not None]
        if len(there) < len(unit):
            continue  # a run with --limit, say
        if content_of([[each.texts, each.choices, each.spans] for each in there]) != one.key["content"]:
            raise EnsueError(
                f"{one.item} is not what people read; run on the project's data ({export.source})."
            )
        for field, id in fields.items():
            found.setdefault(id, {})[one.annotator] = label_of(data.spec, one.values[field])
    if not found:
        raise EnsueError(f"People labelled no example of {data.spec.name}, {split} split, that is here.")
    return found


def label_of(spec: TaskSpec, given: Any) -> Prediction:
    """Return what somebody said as the task spells it."""
    if spec.name == SCALE_TASK:
        return SCALE[int(given)]
    return float(given) if spec.form == "score" else str(given)


def vote(spec: TaskSpec, example: Example, given: Sequence[Prediction]) -> Prediction:
    """Return what most annotators said, or the mean of their scores."""
    if spec.form == "score":
        return fmean(float(one) for one in given)
    said = [str(one) for one in given]
    return majority(said, spec.labels or list(dict.fromkeys(example.choices)))[0]


def refuse_others(model: Model, suite: str, asked: Iterable[str]) -> NoReturn:
    """Refuse people who answered none of the tasks that are asked for."""
    export = _export(model)
    tasks = ", ".join(dict.fromkeys(str(one.key["task"]) for one in export.answers()))
    raise EnsueError(
        f"{model.card.source} is of {tasks}, not of {', '.join(f'{suite}/{one}' for one in sorted(asked))}; run"
        f" ensue run {tasks}."
    )


def _split(export: Export, spec: TaskSpec) -> str | None:
    """Return the split of a task that people answered; None where they answered another task."""
    first = next(export.answers(), None)
    if first is None:
        export.refuse_empty()
    return str(first.key["split"]) if first.key["task"] == f"{spec.suite}/{spec.name}" else None


def _export(model: Model) -> Export:
    export = people_of(model, KIND)
    if export is None:
        raise EnsueError(f"{model.card.name} is not an export of people; give --model human:FILE.")
    return export
