"""What a GLUE or SuperGLUE run scored: every task on dev or on test, never mixed, diagnostics and trainings apart."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.diagnostics import TAXONOMY
from ensue.benchmarks.nlu.examples import DEV, TEST, TaskSpec
from ensue.benchmarks.nlu.scores import EACH, KAPPA, SCORE
from ensue.benchmarks.nlu.suites import TITLES, specs_of
from ensue.report.figure import Figure
from ensue.report.results import MetricRow

MISMATCHED = "-mismatched"
# What a row's settings say of what was measured; the rest says how the task was answered.
_OF_THE_ROW = ("split", "category", "tag", "sections", "part", "covers", "tasks", "averaged")
_NO_FILES = re.compile(r"task (\S+) left out, for want")
_NOT_LEARNT = re.compile(r"task (\S+) left out: ")


class Measure(NamedTuple):
    """A metric of a task, and of which of MNLI's sections it is ("m" or "mm"; empty elsewhere)."""

    metric: str
    section: str = ""


class TaskAnswer(NamedTuple):
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


class ScoreLine(NamedTuple):
    """A task, a diagnostic set or a whole benchmark ("total") on one split.

    `covers` is what a benchmark's score is over; `part` says of a task that was judged on a part of the published
    split which part that is.
    """

    name: str
    kind: str
    split: str
    answers: list[TaskAnswer]
    covers: str = ""
    tasks: tuple[str, ...] = ()
    part: str = ""

    @property
    def short_covers(self) -> str:
        """What fits a cell; the rest of it names the tasks that count in part."""
        return self.covers.partition(",")[0].replace(" tasks whole", " whole")

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
        """Return a measure, of several answers its mean."""
        return statistics.fmean(
            answer.measures[measure].value for answer in self.answers if measure in answer.measures
        )


class Phenomenon(NamedTuple):
    """Where a diagnostic's figure stands: over all examples, over a category, over a tag within one."""

    category: str = ""
    tag: str = ""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Phenomenon:
        """Read the settings of a row."""
        return cls(str(settings.get("category", "")), str(settings.get("tag", "")))


class Diagnosis(NamedTuple):
    """One answer to a tagged diagnostic set, by phenomenon."""

    task: str
    split: str
    metric: str
    way: str
    figures: dict[Phenomenon, Figure]


class RunScores(NamedTuple):
    """A run's figures: split by split its tasks and the benchmark's score, then diagnostics.

    Tasks without a figure are `missing` (files), `unlearnt` or `unjudged` (no labels). Settings of all answers are
    `constant`; by the `varying` ones answers to the same task differ.
    """

    name: str
    suite: str
    lines: list[ScoreLine]
    diagnoses: list[Diagnosis]
    missing: list[str]
    unlearnt: list[str]
    unjudged: list[str]
    constant: dict[str, Any]
    varying: list[str]
    limit: int | None

    @property
    def title(self) -> str:
        return TITLES[self.suite]

    @property
    def splits(self) -> list[str]:
        return list(dict.fromkeys(line.split for line in self.lines if line.kind != "diagnostic"))

    @property
    def diagnostics(self) -> list[ScoreLine]:
        return [line for line in self.lines if line.kind == "diagnostic"]

    def on(self, split: str) -> list[ScoreLine]:
        """Return the tasks judged on a split, then the benchmark's score."""
        return [line for line in self.lines if line.split == split and line.kind != "diagnostic"]


def scores_of(results: Mapping[str, Any], name: str | None = None) -> RunScores | None:
    """Return a run's figures; None where it is of another benchmark or its rows are not of the known form."""
    suite = str(results.get("benchmark")).partition("/")[0]
    rows: list[MetricRow] = [
        row
        for row in results["metrics"]
        if "split" in row["settings"] and isinstance(row["value"], (int, float))
        if not of_people(row)
    ]
    if suite not in TITLES or not rows:
        return None
    ways = _ways(rows)
    found = [line for spec in specs_of(suite) for line in _task_lines(spec, rows)]
    lines = []
    for split in _splits(rows):
        if own := [line for line in found if (line.kind, line.split) == ("task", split)]:
            lines += [*own, *_total(TITLES[suite], split, rows)]
    limit = re.search(r" limit:(\d+)", str(results.get("signature") or ""))
    return RunScores(
        name=str(results.get("model") or "") if name is None else name,
        suite=suite,
        lines=[*lines, *(line for line in found if line.kind == "diagnostic")],
        diagnoses=[one for spec in specs_of(suite) for one in _diagnoses(spec, rows)],
        **_without_figures(results, suite, {line.name for line in found}),
        constant={key: values[0] for key, values in ways.items() if len(values) == 1},
        varying=[key for key, values in ways.items() if len(values) > 1],
        limit=int(limit[1]) if limit else None,
    )


def of_people(row: MetricRow) -> bool:
    """Return whether a row says what annotators are worth one by one, or how far they agree: no way of answering."""
    return row["metric"] == KAPPA or row["metric"].endswith(EACH)


def phenomena() -> list[Phenomenon]:
    """Return all of table A.1 in its order, each category before its tags, everything together first."""
    found = [Phenomenon()]
    for category, tags in TAXONOMY.items():
        found += [Phenomenon(category), *(Phenomenon(category, tag) for tag in tags)]
    return found


def base_split(split: str) -> str:
    """Return dev or test: MNLI's second section belongs to the split of its first.

    >>> base_split("dev-mismatched")
    'dev'
    """
    return split.removesuffix(MISMATCHED)


def measure_of(task: str, metric: str, split: str) -> Measure:
    """Return the measure of a row; MNLI's have a section each."""
    if task != "MNLI":
        return Measure(metric)
    return Measure(metric, "mm" if split.endswith(MISMATCHED) else "m")


def spread_of(values: Sequence[float], ways: Sequence[str]) -> Spread:
    """Return the spread of at least one value; the first of equals is the best.

    >>> spread_of([0.5, 0.7], ["a", "b"])._replace(sd=0)
    Spread(mean=0.6, sd=0, best=0.7, best_way='b', of=2)
    """
    best = max(range(len(values)), key=values.__getitem__)
    sd = statistics.stdev(values) if len(values) > 1 else 0.0
    return Spread(statistics.fmean(values), sd, values[best], ways[best], len(values))


def dev_spreads(fits: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Spread]:
    """Return dev scores over the seeds, by task and way of answering, wherever there are several.

    Tasks that were trained together are there both together and each by itself.
    """
    found: dict[tuple[str, str], list[tuple[float, str]]] = {}
    for fit in fits:
        of_tasks = {fit["task"]: fit.get("dev_score"), **(fit.get("dev_by_task") or {})}
        for task, value in of_tasks.items():
            if isinstance(value, (int, float)):
                found.setdefault((task, way_of_fit(fit)), []).append(
                    (float(value), f"seed {fit.get('seed')}")
                )
    return {
        key: spread_of([value for value, _ in values], [seed for _, seed in values])
        for key, values in found.items()
        if len(values) > 1
    }


def way_of_fit(fit: Mapping[str, Any]) -> str:
    """Return in which way a training answers its task, as an answer to it is called."""
    return f"layer {fit['layer']}" if "layer" in fit else ""


def _ways(rows: Iterable[MetricRow]) -> dict[str, list[Any]]:
    """Return the values of each setting that says how a task was answered."""
    found: dict[str, list[Any]] = {}
    for row in rows:
        for key, value in _way(row).items():
            if value not in found.setdefault(key, []):
                found[key].append(value)
    return found


def _way(row: MetricRow) -> dict[str, Any]:
    return {key: value for key, value in row["settings"].items() if key not in _OF_THE_ROW}


def _way_words(row: MetricRow, rows: Iterable[MetricRow]) -> str:
    """Say how a row differs from others: a template is known by its name; what else differs is named first."""
    differing = [key for key, values in _ways(rows).items() if len(values) > 1]
    found = {key: row["settings"][key] for key in differing if key in row["settings"]}
    return ", ".join(str(value) if key == "template" else f"{key} {value}" for key, value in found.items())


def _splits(rows: Iterable[MetricRow]) -> list[str]:
    """Return the splits of rows, dev before test."""
    found = dict.fromkeys(base_split(row["settings"]["split"]) for row in rows)
    return sorted(found, key=lambda split: [DEV, TEST].index(split) if split in (DEV, TEST) else 2)


def _task_lines(spec: TaskSpec, rows: Iterable[MetricRow]) -> list[ScoreLine]:
    """Return a line a split; the rows of phenomena are not among them."""
    own = [row for row in rows if row["task"] == spec.name and "category" not in row["settings"]]
    lines = []
    for split in _splits(own):
        here = [row for row in own if base_split(row["settings"]["split"]) == split]
        part = next((str(row["settings"]["part"]) for row in here if "part" in row["settings"]), "")
        kind = "task" if spec.in_score else "diagnostic"
        lines.append(ScoreLine(spec.name, kind, split, _answers(spec, here), part=part))
    return lines


def _answers(spec: TaskSpec, rows: Sequence[MetricRow]) -> list[TaskAnswer]:
    groups: dict[str, list[MetricRow]] = {}
    for row in rows:
        groups.setdefault(json.dumps(_way(row), sort_keys=True, default=str), []).append(row)
    found = []
    for group in groups.values():
        order = [*spec.metrics, *(row["metric"] for row in group)]
        measures = {
            measure_of(spec.name, row["metric"], row["settings"]["split"]): Figure.of(row)
            for row in group
            if row["metric"] != SCORE
        }
        ordered = sorted(measures.items(), key=lambda one: (order.index(one[0].metric), one[0].section))
        score = next((Figure.of(row) for row in group if row["metric"] == SCORE), None)
        if measures or score:
            found.append(TaskAnswer(_way_words(group[0], rows), dict(ordered), score))
    return found


def _total(title: str, split: str, rows: Iterable[MetricRow]) -> list[ScoreLine]:
    """Return the line of the benchmark's score, where there is one."""
    own = [row for row in rows if row["task"] == title and row["settings"]["split"] == split]
    if not own:
        return []
    answers = [TaskAnswer(_way_words(row, own), {}, Figure.of(row)) for row in own]
    settings = own[0]["settings"]
    tasks = tuple(name for name in str(settings.get("tasks", "")).split(",") if name)
    return [ScoreLine(title, "total", split, answers, str(settings.get("covers", "")), tasks)]


def _diagnoses(spec: TaskSpec, rows: Iterable[MetricRow]) -> list[Diagnosis]:
    """Return figures by phenomenon of the set's correlation: R3 where there are three labels, else Matthews'."""
    metric = "r3" if len(spec.labels) == 3 else "mcc"
    own = [row for row in rows if (row["task"], row["metric"]) == (spec.name, metric)]
    if not any("category" in row["settings"] for row in own):
        return []
    found: dict[tuple[str, str], dict[Phenomenon, Figure]] = {}
    for row in own:
        place = (row["settings"]["split"], _way_words(row, own))
        found.setdefault(place, {})[Phenomenon.of(row["settings"])] = Figure.of(row)
    return [Diagnosis(spec.name, split, metric, way, figures) for (split, way), figures in found.items()]


def _without_figures(results: Mapping[str, Any], suite: str, judged: set[str]) -> dict[str, list[str]]:
    """Return the tasks that were asked for and have no figure, by what kept them from having one."""
    reasons = [str(reason) for reason in results.get("skipped") or {}]
    missing = [found[1] for reason in reasons if (found := _NO_FILES.match(reason))]
    unlearnt = [found[1] for reason in reasons if (found := _NOT_LEARNT.match(reason))]
    asked = str(results.get("benchmark")).partition("/")[2].casefold().split(",")
    wanted = [spec.name for spec in specs_of(suite) if asked == [""] or spec.name.casefold() in asked]
    unjudged = [name for name in wanted if name not in {*judged, *missing, *unlearnt}]
    return {"missing": missing, "unlearnt": unlearnt, "unjudged": unjudged}
