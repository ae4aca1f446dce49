"""What is said of GLUE and SuperGLUE runs: every task on dev or on test, never mixed, diagnostics apart."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.glue import suite as glue
from ensue.benchmarks.nlu.examples import DEV, TEST, TaskSpec
from ensue.benchmarks.superglue import suite as superglue

_SUITES = {"glue": ("GLUE", glue.SPECS), "superglue": ("SuperGLUE", superglue.SPECS)}
SCORE = "score"
_MISMATCHED = "-mismatched"
# What a row's settings say of what was measured; the rest says how the task was answered.
_OF_THE_ROW = ("split", "category", "tag", "sections", "covers", "tasks", "averaged")
_NO_FILES = re.compile(r"task (\S+) left out, for want")
_NOT_LEARNT = re.compile(r"task (\S+) left out: ")


class Figure(NamedTuple):
    """One number with its interval."""

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 0


class Measure(NamedTuple):
    """A metric of a task, and of which of MNLI's sections it is ("m" or "mm"; empty elsewhere)."""

    metric: str
    section: str = ""


class Answer(NamedTuple):
    """A task answered in one way (with one template, from one layer); `way` is empty where there is only one."""

    way: str
    measures: dict[Measure, Figure]
    score: Figure | None

    @property
    def main(self) -> Figure:
        """What the answer is judged by; diagnostics have no score, their first measure stands for it."""
        return self.score or next(iter(self.measures.values()))


class Spread(NamedTuple):
    """A number over several answers or trainings; `sd` is the sample's."""

    mean: float
    sd: float
    best: float
    best_way: str
    of: int


class Line(NamedTuple):
    """A task, a diagnostic set or a whole benchmark on one split; `covers` is what a benchmark's score is over."""

    name: str
    kind: str
    split: str
    answers: list[Answer]
    covers: str = ""
    tasks: tuple[str, ...] = ()

    @property
    def measures(self) -> list[Measure]:
        return list(dict.fromkeys(measure for answer in self.answers for measure in answer.measures))

    @property
    def spread(self) -> Spread | None:
        """Over the ways the task was answered in; None where there is one."""
        found = {answer.way: answer.main.value for answer in self.answers}
        return spread_of(list(found.values()), list(found)) if len(self.answers) > 1 else None

    @property
    def value(self) -> float:
        """The score, of several answers their mean."""
        return statistics.fmean(answer.main.value for answer in self.answers)

    @property
    def only(self) -> Figure | None:
        """The one figure there is; None where there are several answers."""
        return self.answers[0].main if len(self.answers) == 1 else None

    def mean(self, measure: Measure) -> float:
        return statistics.fmean(
            answer.measures[measure].value for answer in self.answers if measure in answer.measures
        )


class Block(NamedTuple):
    """All that was judged on one split, the benchmark's score last."""

    split: str
    lines: list[Line]
    total: Line | None


class Phenomenon(NamedTuple):
    """Where a diagnostic's figure stands: over all examples, over a category, over a tag within one."""

    category: str = ""
    tag: str = ""


class Diagnosis(NamedTuple):
    """One answer to a tagged diagnostic set, by phenomenon."""

    task: str
    split: str
    metric: str
    way: str
    figures: dict[Phenomenon, Figure]


class Sheet(NamedTuple):
    """A run as it is told. Tasks without a figure are `missing` (files), `unlearnt` or `unjudged` (no labels)."""

    name: str
    suite: str
    blocks: list[Block]
    diagnostics: list[Line]
    diagnoses: list[Diagnosis]
    missing: list[str]
    unlearnt: list[str]
    unjudged: list[str]
    constant: dict[str, Any]
    varying: list[str]
    limit: int | None

    @property
    def title(self) -> str:
        return title_of(self.suite)

    def block(self, split: str) -> Block | None:
        return next((block for block in self.blocks if block.split == split), None)


def title_of(suite: str) -> str:
    """The benchmark's name as it is written."""
    return _SUITES[suite][0]


def specs_of(suite: str) -> tuple[TaskSpec, ...]:
    """The tasks of a suite, in its order."""
    return _SUITES[suite][1]


def spread_of(values: Sequence[float], ways: Sequence[str]) -> Spread:
    """The spread of at least one value; the first of equals is the best.

    >>> spread_of([0.5, 0.7], ["a", "b"])._replace(sd=0)
    Spread(mean=0.6, sd=0, best=0.7, best_way='b', of=2)
    """
    best = max(range(len(values)), key=values.__getitem__)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(statistics.fmean(values), sd, values[best], ways[best], len(values))


def sheet_of(results: Mapping[str, Any], name: str | None = None) -> Sheet | None:
    """A run's figures; None where it is of another benchmark or its rows are not of the known form."""
    suite = str(results.get("benchmark")).partition("/")[0]
    if suite not in _SUITES:
        return None
    rows = [
        row
        for row in results["metrics"]
        if "split" in row["settings"] and isinstance(row["value"], (int, float))
    ]
    if not rows:
        return None
    title, specs = _SUITES[suite]
    ways = _ways(rows)
    lines = [line for spec in specs for line in _task_lines(spec, rows)]
    blocks = [
        Block(split, [line for line in lines if (line.kind, line.split) == ("task", split)], total)
        for split in _splits(rows)
        for total in [_total(title, split, rows)]
    ]
    return Sheet(
        name=str(results.get("model") or "") if name is None else name,
        suite=suite,
        blocks=[block for block in blocks if block.lines],
        diagnostics=[line for line in lines if line.kind == "diagnostic"],
        diagnoses=[one for spec in specs for one in _diagnoses(spec, rows)],
        **_without_figures(results, suite, {line.name for line in lines}),
        constant={key: values[0] for key, values in ways.items() if len(values) == 1},
        varying=[key for key, values in ways.items() if len(values) > 1],
        limit=_limit(results),
    )


def way_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of a row's settings those that say how the task was answered."""
    return {key: value for key, value in settings.items() if key not in _OF_THE_ROW}


def _ways(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        for key, value in way_of(row["settings"]).items():
            if value not in found.setdefault(key, []):
                found[key].append(value)
    return found


def _splits(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Dev before test; MNLI's second section belongs to the split of its first."""
    found = dict.fromkeys(_base(row["settings"]["split"]) for row in rows)
    return sorted(found, key=lambda split: [DEV, TEST].index(split) if split in (DEV, TEST) else 2)


def _base(split: str) -> str:
    return split.removesuffix(_MISMATCHED)


def _figure(row: Mapping[str, Any]) -> Figure:
    low, high = row.get("ci95") or (None, None)
    return Figure(float(row["value"]), low, high, row["n"])


def _task_lines(spec: TaskSpec, rows: Iterable[Mapping[str, Any]]) -> list[Line]:
    """A line a split; the rows of phenomena are not among them."""
    own = [row for row in rows if row["task"] == spec.name and "category" not in row["settings"]]
    kind = "task" if spec.in_score else "diagnostic"
    return [
        Line(
            spec.name, kind, split, _answers(spec, [r for r in own if _base(r["settings"]["split"]) == split])
        )
        for split in _splits(own)
    ]


def _answers(spec: TaskSpec, rows: Sequence[Mapping[str, Any]]) -> list[Answer]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(json.dumps(way_of(row["settings"]), sort_keys=True, default=str), []).append(row)
    differing = [key for key, values in _ways(rows).items() if len(values) > 1]
    found = []
    for group in groups.values():
        measures = {_measure(spec, row): _figure(row) for row in group if row["metric"] != SCORE}
        order = [*spec.metrics, *(measure.metric for measure in measures)]
        measures = dict(
            sorted(measures.items(), key=lambda one: (order.index(one[0].metric), one[0].section))
        )
        score = next((_figure(row) for row in group if row["metric"] == SCORE), None)
        if measures or score:
            found.append(Answer(_way_words(group[0]["settings"], differing), measures, score))
    return found


def _measure(spec: TaskSpec, row: Mapping[str, Any]) -> Measure:
    if not any(split.endswith(_MISMATCHED) for split in spec.sizes):
        return Measure(row["metric"])
    return Measure(row["metric"], "mm" if row["settings"]["split"].endswith(_MISMATCHED) else "m")


def _way_words(settings: Mapping[str, Any], keys: Iterable[str]) -> str:
    """A template is known by its name; what else differs is named first."""
    found = {key: settings[key] for key in keys if key in settings}
    return ", ".join(str(value) if key == "template" else f"{key} {value}" for key, value in found.items())


def _total(title: str, split: str, rows: Iterable[Mapping[str, Any]]) -> Line | None:
    own = [row for row in rows if row["task"] == title and row["settings"]["split"] == split]
    if not own:
        return None
    differing = [key for key, values in _ways(own).items() if len(values) > 1]
    answers = [Answer(_way_words(row["settings"], differing), {}, _figure(row)) for row in own]
    settings = own[0]["settings"]
    tasks = tuple(name for name in str(settings.get("tasks", "")).split(",") if name)
    return Line(title, "total", split, answers, str(settings.get("covers", "")), tasks)


def _diagnoses(spec: TaskSpec, rows: Iterable[Mapping[str, Any]]) -> list[Diagnosis]:
    """By the correlation of the set: R3 where there are three labels, else Matthews'."""
    metric = "r3" if len(spec.labels) == 3 else "mcc"
    own = [row for row in rows if (row["task"], row["metric"]) == (spec.name, metric)]
    if not any("category" in row["settings"] for row in own):
        return []
    differing = [key for key, values in _ways(own).items() if len(values) > 1]
    found: dict[tuple[str, str], dict[Phenomenon, Figure]] = {}
    for row in own:
        s = row["settings"]
        place = Phenomenon(str(s.get("category", "")), str(s.get("tag", "")))
        found.setdefault((s["split"], _way_words(s, differing)), {})[place] = _figure(row)
    return [Diagnosis(spec.name, split, metric, way, figures) for (split, way), figures in found.items()]


def _without_figures(results: Mapping[str, Any], suite: str, judged: set[str]) -> dict[str, list[str]]:
    """The tasks that were asked for and have no figure, by what kept them from having one."""
    reasons = [str(reason) for reason in results.get("skipped") or {}]
    missing = [found[1] for reason in reasons if (found := _NO_FILES.match(reason))]
    unlearnt = [found[1] for reason in reasons if (found := _NOT_LEARNT.match(reason))]
    asked = str(results.get("benchmark")).partition("/")[2].casefold()
    names = [spec.name for spec in specs_of(suite)]
    wanted = [name for name in names if not asked or name.casefold() in asked.split(",")]
    known = {*judged, *missing, *unlearnt}
    return {
        "missing": missing,
        "unlearnt": unlearnt,
        "unjudged": [name for name in wanted if name not in known],
    }


def _limit(results: Mapping[str, Any]) -> int | None:
    found = re.search(r" limit:(\d+)", str(results.get("signature") or ""))
    return int(found[1]) if found else None
