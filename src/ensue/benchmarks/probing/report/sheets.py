"""What is said of DiscoEval and SentEval runs: dev and test by task, group and layer, one protocol at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.probing.report.suites import AVERAGE, Column, Suite, suite_of

# What a group is averaged as, the most telling first: SSS mixes correlations with an accuracy.
_GROUP_METRICS = ("average", "accuracy", "pearson")
_LEFT_OUT = re.compile(r"task (\S+) left out")
_ABLATIONS = {"context": "without context", "hidden": "without a hidden layer"}


class Figure(NamedTuple):
    """One number of a run; `tasks` is what an average covers and `lacking` what it should cover but does not."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0
    metric: str = "accuracy"
    tasks: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    ablation: tuple[str, ...] = ()


class Place(NamedTuple):
    """Where a figure stands: a task, group or average, a split, and a layer or the encoder's own output."""

    name: str
    split: str
    layer: int | None = None


class Line(NamedTuple):
    """A task, group or average; of several layers the one that is best on its dev split.

    Without a dev split it is the layer the whole run is told by. A task whose files were not there is `missing`.
    """

    name: str
    kind: str
    metric: str
    dev: Figure | None
    test: Figure | None
    layer: int | None
    missing: bool = False


class Sheet(NamedTuple):
    """The figures of a run under one protocol; `protocol` is empty where nothing was trained."""

    name: str
    suite: Suite
    protocol: str
    layers: list[int]
    figures: dict[Place, Figure]
    also: dict[tuple[Place, str], Figure]
    missing: tuple[str, ...]
    limit: int | None

    def at(self, name: str, split: str, layer: int | None) -> Figure | None:
        return self.figures.get(Place(name, split, layer))

    def column(self, column: Column, layer: int | None) -> Figure | None:
        """A column of table 2; a column of one task is there without a row of its own."""
        found = self.at(column.name, "test", layer)
        return found or (self.at(column.tasks[0], "test", layer) if len(column.tasks) == 1 else None)

    @property
    def several_layers(self) -> bool:
        return len(self.layers) > 1


def run_names(folders: Sequence[Path], results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The models of runs; one that comes twice is told apart by folder."""
    models = [str(each.get("model") or folder.name) for folder, each in zip(folders, results, strict=True)]
    names: list[str] = []
    for folder, model in zip(folders, models, strict=True):
        name = model if models.count(model) == 1 else f"{model} ({folder.name})"
        names.append(name if name not in names else f"{model} ({folder})")
    return names


def sheets(results: Mapping[str, Any], name: str | None = None) -> list[Sheet]:
    """The figures of a run, protocol by protocol; none where its rows are not of the known form."""
    suite = suite_of(results.get("benchmark"))
    rows = [row for row in results["metrics"] if row["settings"].get("split") in ("dev", "test")]
    if suite is None or not rows:
        return []
    protocols = dict.fromkeys(str(row["settings"].get("protocol") or "") for row in rows)
    # What needs no classifier is the same under every protocol.
    trained = [protocol for protocol in protocols if protocol] or [""]
    shown = str(results.get("model") or "") if name is None else name
    found = [_sheet(suite, shown, protocol, rows, results) for protocol in trained]
    return [sheet for sheet in found if sheet.figures]


def _sheet(
    suite: Suite, name: str, protocol: str, rows: Iterable[Mapping[str, Any]], results: Mapping[str, Any]
) -> Sheet:
    figures: dict[Place, Figure] = {}
    also: dict[tuple[Place, str], Figure] = {}
    rows = [row for row in rows if (row["settings"].get("protocol") or protocol) == protocol]
    rows = [row for row in rows if isinstance(row["value"], (int, float))]
    main = _main_metrics(suite, rows)
    for row in rows:
        s = row["settings"]
        layer = s["layer"] if isinstance(s.get("layer"), int) else None
        place = Place(str(row["task"]), s["split"], layer)
        # Sets of an STS year and weighted means stand beside what is reported, not in its place.
        extra = [str(s[key]) for key in ("subset", "average") if key in s]
        if extra or row["metric"] != main[place.name, place.split]:
            also[place, " ".join([*extra, row["metric"]])] = _figure(row)
        else:
            figures[place] = _figure(row)
    layers = sorted({place.layer for place in figures if place.layer is not None})
    limit = re.search(r" limit:(\d+)", str(results.get("signature") or ""))
    return Sheet(
        name,
        suite,
        protocol,
        layers,
        figures,
        also,
        _missing(suite, figures, results),
        int(limit[1]) if limit else None,
    )


def _main_metrics(suite: Suite, rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """What each task and group is judged by, on each split."""
    has: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        has.setdefault((str(row["task"]), row["settings"]["split"]), set()).add(row["metric"])
    return {
        (name, split): suite.metric(name)
        if name in suite.tasks
        else next((metric for metric in _GROUP_METRICS if metric in metrics), "accuracy")
        for (name, split), metrics in has.items()
    }


def _figure(row: Mapping[str, Any]) -> Figure:
    s = row["settings"]
    low, high = row.get("ci95") or (None, None)
    return Figure(
        value=float(row["value"]),
        low=low,
        high=high,
        n=row["n"],
        metric=row["metric"],
        tasks=_names(s.get("tasks")),
        lacking=_names(s.get("missing")),
        ablation=tuple(words for key, words in _ABLATIONS.items() if s.get(key) == "no"),
    )


def _names(text: object) -> tuple[str, ...]:
    return tuple(text.split(",")) if isinstance(text, str) and text else ()


def _missing(suite: Suite, figures: Mapping[Place, Figure], results: Mapping[str, Any]) -> tuple[str, ...]:
    named = {name for figure in figures.values() for name in figure.lacking}
    for reason in results.get("skipped") or {}:
        if found := _LEFT_OUT.match(str(reason)):
            named.add(found[1])
    return tuple(task for task in suite.tasks if task in named)


def lines(sheet: Sheet) -> list[Line]:
    """Groups before their tasks, in the order of the suite, then the average; a group of one task is that task."""
    found = []
    for group, tasks in sheet.suite.groups.items():
        known = [task for task in tasks if _is_there(sheet, task) or task in sheet.missing]
        several = len(tasks) > 1
        if several and (_is_there(sheet, group) or (known and set(tasks) <= set(sheet.missing))):
            found.append(_line(sheet, group, "group"))
        found += [_line(sheet, task, "task" if several else "group") for task in known]
    if _is_there(sheet, AVERAGE):
        found.append(_line(sheet, AVERAGE, AVERAGE))
    return found


def _is_there(sheet: Sheet, name: str) -> bool:
    return any(place.name == name for place in sheet.figures)


def _line(sheet: Sheet, name: str, kind: str) -> Line:
    if not _is_there(sheet, name):
        return Line(name, kind, sheet.suite.metric(name), None, None, None, missing=True)
    layer = best_layer(sheet, name)
    layer = common_layer(sheet) if layer is None else layer
    dev, test = (sheet.at(name, split, layer) for split in ("dev", "test"))
    metric = next(figure.metric for place, figure in sheet.figures.items() if place.name == name)
    return Line(name, kind, metric, dev, test, layer)


def best_layer(sheet: Sheet, name: str) -> int | None:
    """The layer that is best on dev, the lower of equals; None where dev does not say."""
    on_dev = {n: found.value for n in sheet.layers if (found := sheet.at(name, "dev", n)) is not None}
    # A layer that was not measured might have been better.
    return max(on_dev, key=lambda n: (on_dev[n], -n)) if len(on_dev) == len(sheet.layers) > 1 else None


class MeanLayer(NamedTuple):
    """Table 3: the mean number of the best layer over tasks, and how many tasks those are."""

    layer: float
    tasks: int
    without_dev: tuple[str, ...]


def mean_layer(sheet: Sheet) -> MeanLayer | None:
    """The best layers of all tasks that dev can choose one for; None where there is nothing to choose."""
    there = [task for task in sheet.suite.tasks if _is_there(sheet, task)]
    chosen = {task: best for task in there if (best := best_layer(sheet, task)) is not None}
    if not chosen:
        return None
    without = tuple(task for task in there if task not in chosen)
    return MeanLayer(sum(chosen.values()) / len(chosen), len(chosen), without)


def common_layer(sheet: Sheet) -> int | None:
    """The one layer to tell a whole run by: best on dev on average over tasks; the last where dev cannot say."""
    if not sheet.several_layers:
        return sheet.layers[0] if sheet.layers else None
    if (best := best_layer(sheet, AVERAGE)) is not None:
        return best
    chosen = [task for task in sheet.suite.tasks if best_layer(sheet, task) is not None]
    if not chosen:
        return sheet.layers[-1]

    def on_dev(layer: int) -> float:
        return sum(found.value for task in chosen if (found := sheet.at(task, "dev", layer)) is not None)

    return max(sheet.layers, key=lambda layer: (on_dev(layer), -layer))
