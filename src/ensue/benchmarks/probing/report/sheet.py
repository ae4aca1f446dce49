"""What a DiscoEval or SentEval run found: dev and test figures by task, group and layer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ensue.benchmarks.discoeval.data import GROUPS as DISCOEVAL_GROUPS
from ensue.benchmarks.discoeval.data import SPECS
from ensue.benchmarks.senteval.data import GROUPS as SENTEVAL_GROUPS
from ensue.benchmarks.senteval.data import TASKS
from ensue.report.figure import Figure

AVERAGE = "average"
# What a group is averaged as, the most telling first: SSS mixes correlations with an accuracy.
_GROUP_METRICS = ("average", "accuracy", "pearson")
_LEFT_OUT = re.compile(r"task (\S+) left out")
_ABLATIONS = {"context": "without context", "hidden": "without a hidden layer"}


class Suite(NamedTuple):
    """A suite: its groups of tasks, the columns it has in table 2, and metrics that are not accuracy, by task."""

    name: str
    title: str
    groups: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[str, ...]]
    metrics: Mapping[str, str]

    @property
    def tasks(self) -> list[str]:
        return [task for members in self.groups.values() for task in members]

    @property
    def package(self) -> str:
        """Where the suite's published figures are."""
        return f"ensue.benchmarks.{self.name}"

    def metric(self, task: str) -> str:
        return self.metrics.get(task, "accuracy")


def _discoeval() -> Suite:
    groups = {group: tuple(spec.name for spec in SPECS if spec.group == group) for group in DISCOEVAL_GROUPS}
    columns = {spec.column: tuple(one.name for one in SPECS if one.column == spec.column) for spec in SPECS}
    return Suite("discoeval", "DiscoEval", groups, columns, {})


def _senteval() -> Suite:
    groups: dict[str, tuple[str, ...]] = {
        group: tuple(task.name for task in tasks) for group, tasks in SENTEVAL_GROUPS.items()
    }
    return Suite("senteval", "SentEval", groups, groups, {task.name: task.metric for task in TASKS.values()})


SUITES = {suite.name: suite for suite in (_discoeval(), _senteval())}


class RunFigure(NamedTuple):
    """A figure of a run or paper; `tasks` is what an average covers and `lacking` what it should but does not."""

    figure: Figure
    metric: str = "accuracy"
    tasks: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    ablation: tuple[str, ...] = ()

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RunFigure:
        """Read a row of results.json."""
        s = row["settings"]
        ablation = tuple(words for key, words in _ABLATIONS.items() if s.get(key) == "no")
        return cls(Figure.of(row), row["metric"], _names(s.get("tasks")), _names(s.get("missing")), ablation)

    @property
    def value(self) -> float:
        return self.figure.value


def _names(text: object) -> tuple[str, ...]:
    return tuple(text.split(",")) if isinstance(text, str) and text else ()


class FigurePlace(NamedTuple):
    """Where a figure stands: a task, group or average, a split, and a layer or the encoder's own output."""

    name: str
    split: str
    layer: int | None = None


class TaskLine(NamedTuple):
    """A task, group or average; of several layers the one that is best on its dev split.

    Without a dev split it is the layer the whole run is reported at. A task whose files were not there is `missing`.
    """

    name: str
    kind: str
    metric: str
    dev: RunFigure | None = None
    test: RunFigure | None = None
    layer: int | None = None
    missing: bool = False


class MeanLayer(NamedTuple):
    """Table 3: the mean number of the best layer over tasks, and how many tasks those are."""

    layer: float
    tasks: int
    without_dev: tuple[str, ...]


@dataclass(frozen=True)
class ProbingSheet:
    """The figures of a run; `protocol` is empty where nothing was trained, `also` has other metrics."""

    name: str
    suite: Suite
    protocol: str
    entries: Mapping[FigurePlace, RunFigure]
    also: Mapping[tuple[FigurePlace, str], Figure]
    missing: tuple[str, ...]
    limit: int | None

    @cached_property
    def layers(self) -> list[int]:
        return sorted({place.layer for place in self.entries if place.layer is not None})

    @property
    def several_layers(self) -> bool:
        return len(self.layers) > 1

    def at(self, name: str, split: str, layer: int | None) -> RunFigure | None:
        return self.entries.get(FigurePlace(name, split, layer))

    def column(self, name: str) -> RunFigure | None:
        """Return a column of table 2; a column of one task is there without a row of its own."""
        tasks, layer = self.suite.columns[name], self.common_layer
        found = self.at(name, "test", layer)
        return found or (self.at(tasks[0], "test", layer) if len(tasks) == 1 else None)

    def has(self, name: str) -> bool:
        return any(place.name == name for place in self.entries)

    def best_layer(self, name: str) -> int | None:
        """Return the layer that is best on dev, the lower of equals; None where dev does not say."""
        on_dev = {n: found.value for n in self.layers if (found := self.at(name, "dev", n)) is not None}
        # A layer that was not measured might have been better.
        return max(on_dev, key=lambda n: (on_dev[n], -n)) if len(on_dev) == len(self.layers) > 1 else None

    @cached_property
    def mean_layer(self) -> MeanLayer | None:
        """The best layers of all tasks that dev can choose one for; None where there is nothing to choose."""
        there = [task for task in self.suite.tasks if self.has(task)]
        chosen = {task: best for task in there if (best := self.best_layer(task)) is not None}
        if not chosen:
            return None
        without = tuple(task for task in there if task not in chosen)
        return MeanLayer(sum(chosen.values()) / len(chosen), len(chosen), without)

    @cached_property
    def common_layer(self) -> int | None:
        """The one layer a whole run is reported at: best on dev over all tasks; the last where dev cannot say."""
        if not self.several_layers:
            return self.layers[0] if self.layers else None
        if (best := self.best_layer(AVERAGE)) is not None:
            return best
        chosen = [task for task in self.suite.tasks if self.best_layer(task) is not None]
        if not chosen:
            return self.layers[-1]
        # A task that dev can choose a layer for has a dev figure at every layer.
        on_dev = {n: sum(self.entries[FigurePlace(t, "dev", n)].value for t in chosen) for n in self.layers}
        return max(self.layers, key=lambda layer: (on_dev[layer], -layer))

    @cached_property
    def lines(self) -> list[TaskLine]:
        """Groups before their tasks in the order of the suite, then the average; a group of one task is that task."""
        found = []
        for group, tasks in self.suite.groups.items():
            known = [task for task in tasks if self.has(task) or task in self.missing]
            several = len(tasks) > 1
            if several and (self.has(group) or (known and set(tasks) <= set(self.missing))):
                found.append(self._line(group, "group"))
            found += [self._line(task, "task" if several else "group") for task in known]
        return [*found, *([self._line(AVERAGE, AVERAGE)] if self.has(AVERAGE) else [])]

    def _line(self, name: str, kind: str) -> TaskLine:
        if not self.has(name):
            return TaskLine(name, kind, self.suite.metric(name), missing=True)
        layer = self.best_layer(name)
        layer = self.common_layer if layer is None else layer
        dev, test = (self.at(name, split, layer) for split in ("dev", "test"))
        metric = next(entry.metric for place, entry in self.entries.items() if place.name == name)
        return TaskLine(name, kind, metric, dev, test, layer)


def read_sheet(results: Mapping[str, Any], name: str | None = None) -> ProbingSheet | None:
    """Return the figures of a run; None where its rows are not of the known form.

    The run may be of a group or task of the suite, such as `discoeval/SP`.
    """
    suite = SUITES.get(str(results.get("benchmark")).partition("/")[0])
    rows = [
        row
        for row in results["metrics"]
        if row["settings"].get("split") in ("dev", "test") and isinstance(row["value"], (int, float))
    ]
    if suite is None or not rows:
        return None
    # What needs no classifier states no protocol.
    protocol = next(filter(None, (str(row["settings"].get("protocol") or "") for row in rows)), "")
    entries: dict[FigurePlace, RunFigure] = {}
    also: dict[tuple[FigurePlace, str], Figure] = {}
    main = _main_metrics(suite, rows)
    for row in rows:
        s = row["settings"]
        layer = s["layer"] if isinstance(s.get("layer"), int) else None
        place = FigurePlace(str(row["task"]), s["split"], layer)
        # Sets of an STS year and weighted means stand beside what is reported, not in its place.
        extra = [str(s[key]) for key in ("subset", "average") if key in s]
        if extra or row["metric"] != main[place.name, place.split]:
            also[place, " ".join([*extra, row["metric"]])] = Figure.of(row)
        else:
            entries[place] = RunFigure.of(row)
    limit = re.search(r" limit:(\d+)", str(results.get("signature") or ""))
    return ProbingSheet(
        str(results.get("model") or "") if name is None else name,
        suite,
        protocol,
        entries,
        also,
        _missing(suite, entries.values(), results.get("skipped") or {}),
        int(limit[1]) if limit else None,
    )


def _main_metrics(suite: Suite, rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return what each task and group is judged by, on each split."""
    has: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        has.setdefault((str(row["task"]), row["settings"]["split"]), set()).add(row["metric"])
    return {
        (name, split): suite.metric(name)
        if name in suite.tasks
        else next((metric for metric in _GROUP_METRICS if metric in metrics), "accuracy")
        for (name, split), metrics in has.items()
    }


def _missing(suite: Suite, entries: Iterable[RunFigure], skipped: Iterable[str]) -> tuple[str, ...]:
    """Return the tasks that averages lack or the run says it left out."""
    named = {name for entry in entries for name in entry.lacking}
    named |= {found[1] for reason in skipped if (found := _LEFT_OUT.match(str(reason)))}
    return tuple(task for task in suite.tasks if task in named)
