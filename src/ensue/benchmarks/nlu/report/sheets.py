"""From the rows of a GLUE or SuperGLUE run to its sheet: which figures it has, and which tasks have none and why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ensue.benchmarks.nlu.examples import DEV, TEST, TaskSpec
from ensue.benchmarks.nlu.report.scores import (
    MISMATCHED,
    SCORE,
    Answer,
    Block,
    Diagnosis,
    Figure,
    Line,
    Measure,
    Phenomenon,
    Sheet,
    base_split,
)
from ensue.benchmarks.nlu.suites import TITLES, specs_of

# What a row's settings say of what was measured; the rest says how the task was answered.
_OF_THE_ROW = ("split", "category", "tag", "sections", "part", "covers", "tasks", "averaged")
_NO_FILES = re.compile(r"task (\S+) left out, for want")
_NOT_LEARNT = re.compile(r"task (\S+) left out: ")


def sheet_of(results: Mapping[str, Any], name: str | None = None) -> Sheet | None:
    """A run's figures; None where it is of another benchmark or its rows are not of the known form."""
    suite = str(results.get("benchmark")).partition("/")[0]
    if suite not in TITLES:
        return None
    rows = [
        row
        for row in results["metrics"]
        if "split" in row["settings"] and isinstance(row["value"], (int, float))
    ]
    if not rows:
        return None
    title, specs = TITLES[suite], specs_of(suite)
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
    found = dict.fromkeys(base_split(row["settings"]["split"]) for row in rows)
    return sorted(found, key=lambda split: [DEV, TEST].index(split) if split in (DEV, TEST) else 2)


def _figure(row: Mapping[str, Any]) -> Figure:
    low, high = row.get("ci95") or (None, None)
    return Figure(float(row["value"]), low, high, row["n"])


def _task_lines(spec: TaskSpec, rows: Iterable[Mapping[str, Any]]) -> list[Line]:
    """A line a split; the rows of phenomena are not among them."""
    own = [row for row in rows if row["task"] == spec.name and "category" not in row["settings"]]
    kind = "task" if spec.in_score else "diagnostic"
    return [
        Line(
            spec.name,
            kind,
            split,
            _answers(spec, here),
            part=next((str(r["settings"]["part"]) for r in here if "part" in r["settings"]), ""),
        )
        for split in _splits(own)
        for here in [[r for r in own if base_split(r["settings"]["split"]) == split]]
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
    if not any(split.endswith(MISMATCHED) for split in spec.sizes):
        return Measure(row["metric"])
    return Measure(row["metric"], "mm" if row["settings"]["split"].endswith(MISMATCHED) else "m")


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
