"""From predictions to items and metric rows: tasks, groups and the average of table 2; and comparing two runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ensue.benchmarks.base import content_of
from ensue.benchmarks.comparing import Asked, MeanScores
from ensue.benchmarks.discoeval.data import GROUPS, DiscoEvalData
from ensue.benchmarks.discoeval.probe import JUDGED, Choices, Probe
from ensue.benchmarks.probing.choices import covered
from ensue.report.figure import Figure
from ensue.report.results import Item, MetricRow
from ensue.stats.clustered import Interval, clustered_interval, mean_interval
from ensue.stats.ranges import SHARE

METRIC = "accuracy"
# What an id ends in where a run has layers.
_LAYER = "#layer"


@dataclass(frozen=True)
class ProbedSplit:
    """One task at one layer and split: how right each example was (a share of the seeds) and in which cluster."""

    task: DiscoEvalData
    probe: Probe
    split: str
    settings: dict[str, Any]

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        labels = np.asarray([example.label for example in self.task.splits[self.split]])
        right: npt.NDArray[np.float64] = (self.probe.predictions[self.split] == labels).mean(axis=0)
        return right

    def items(self) -> Iterator[Item]:
        labels, several = self.task.labels, len(self.probe.fits) > 1
        mark = "" if self.probe.layer is None else f"{_LAYER}{self.probe.layer}"
        predictions = self.probe.predictions[self.split].T.tolist()
        examples = self.task.splits[self.split]
        for example, found, score in zip(examples, predictions, self.scores.tolist(), strict=True):
            names = [labels[number] for number in found]
            yield Item(
                id=example.id + mark,
                cluster=example.cluster,
                task=self.task.spec.name,
                settings=self.settings,
                scores={METRIC: score},
                outputs={"label": labels[example.label], "predicted": names if several else names[0]},
                content=content_of(example.parts, labels[example.label]),
                asked=content_of(example.parts),
            )

    def interval(self) -> Interval:
        clusters = [example.cluster for example in self.task.splits[self.split]]
        return clustered_interval(self.scores, clusters, bounds=SHARE)

    def row(self) -> MetricRow:
        return Figure(*self.interval()).row(self.task.name, METRIC, self.settings)


def without_layer(name: str) -> str:
    """Return an item's id without the layer it was answered at.

    >>> without_layer("SP/wiki/dev/7#layer12")
    'SP/wiki/dev/7'
    """
    return name.partition(_LAYER)[0]


def judge(task: DiscoEvalData, probe: Probe, choices: Choices) -> list[ProbedSplit]:
    """Return the outcome of a task at a layer, split by split."""
    layer = {} if probe.layer is None else {"layer": probe.layer}
    ablation = choices.ablation(task.spec.group)
    return [
        ProbedSplit(task, probe, split, {"split": split, "protocol": choices.protocol, **layer, **ablation})
        for split in JUDGED
    ]


def metric_rows(
    judged: Sequence[ProbedSplit], asked: str, missing: Sequence[str], limit: int | None = None
) -> Iterator[MetricRow]:
    """Yield rows of all tasks; then of groups, where more than one task was asked for, and of the average of all.

    `asked` is what the user named: nothing (all), a group, or a task; of each file `limit` lines were read.
    """
    yield from (one.row() for one in judged)
    whole = asked.strip("/").lower()
    groups = [group for group in GROUPS if whole in ("", group.lower())]
    cells: dict[tuple[int | None, str], list[ProbedSplit]] = {}
    for one in judged:
        cells.setdefault((one.probe.layer, one.split), []).append(one)
    for cell in cells.values():
        for group in groups:
            chosen = [one for one in cell if one.task.spec.group == group]
            # RST is a task and a group in one: its row is there already.
            if chosen and group != "RST":
                lacking = [name for name in missing if name.partition("/")[0] == group]
                yield _average(group, [[one] for one in chosen], lacking, limit)
        if not whole:
            columns: dict[str, list[ProbedSplit]] = {}
            for one in cell:
                columns.setdefault(one.task.spec.column, []).append(one)
            yield _average("average", list(columns.values()), missing, limit)


def _average(
    name: str, columns: Sequence[Sequence[ProbedSplit]], missing: Sequence[str], limit: int | None
) -> MetricRow:
    """Return the mean over columns of the mean over their tasks, with an interval: the tasks are independent."""
    members = [one for column in columns for one in column]
    weights = [1.0 / (len(columns) * len(column)) for column in columns for _ in column]
    found = mean_interval([one.interval() for one in members], weights)
    shared = {k: v for k, v in members[0].settings.items() if k in ("split", "protocol", "layer")}
    ablations = {k: v for one in members for k, v in one.settings.items() if k in ("context", "hidden")}
    covering = covered([one.task.name for one in members], missing, limit)
    return Figure(*found).row(name, METRIC, {**shared, **ablations, **covering})


class DiscoEvalComparing(MeanScores):
    """Items belong together by task, split and line; layer, protocol and ablation are how it was answered."""

    def asked(self, item: Mapping[str, Any]) -> Asked:
        way = dict(item["settings"])
        split = way.pop("split", None)
        return Asked(without_layer(item["id"]), item["task"], {"split": split}, way)


COMPARING = DiscoEvalComparing()
