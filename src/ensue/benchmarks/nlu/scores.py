"""From judged tasks to rows: every metric, every task's score, and the benchmark's score with what it covers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ensue.benchmarks.comparing import in_common
from ensue.benchmarks.drawn import Drawn, mean_of_answers, mean_of_samples
from ensue.benchmarks.nlu.diagnostics import phenomena_rows
from ensue.benchmarks.nlu.examples import (
    DEV,
    DEV_MISMATCHED,
    HELD_OUT,
    TEST,
    TEST_MISMATCHED,
    TaskData,
    TaskSpec,
)
from ensue.benchmarks.nlu.judging import JudgedSplit, judge
from ensue.benchmarks.nlu.suites import TITLES, specs_of
from ensue.benchmarks.nlu.systems import Answered
from ensue.report.results import MetricRow

SCORE = "score"
# How far annotators agree, and what follows a metric of one of them alone.
KAPPA, EACH = "kappa", "_each"
# MNLI's second section counts in the same score as its first.
SECTIONS = {DEV_MISMATCHED: DEV, TEST_MISMATCHED: TEST}


class TaskScore(NamedTuple):
    """A task's score on dev or test for one way of answering; `sections` names the splits it is the mean of.

    `part` says which part of the published split was judged; it is empty where that is all of it.
    """

    spec: TaskSpec
    split: str
    settings: Mapping[str, Any]
    figure: Drawn
    sections: tuple[str, ...]
    part: str


def judged_rows(
    tasks: Mapping[str, TaskData], answers: Sequence[Answered]
) -> tuple[list[JudgedSplit], list[MetricRow], list[MetricRow]]:
    """Judge the answers to tasks, split by split; return what each is worth, all rows, and those of phenomena."""
    given = [(tasks[one.task], one, split) for one in answers for split in one.predictions]
    judged = [found for each in given if (found := judge(*each)) is not None]
    phenomena = [row for each in given for row in phenomena_rows(*each)]
    return judged, rows(judged), phenomena


def rows(judged: Sequence[JudgedSplit]) -> list[MetricRow]:
    """Return all rows of a run: metrics in the order judged, then scores of tasks, then those of the benchmarks.

    Only tasks that count in a benchmark have a score: the mean of a diagnostic's metrics means nothing.
    """
    scores = task_scores(judged)
    metrics = [
        figure.row(one.spec.name, metric, {"split": one.split, **one.settings})
        for one in judged
        for metric, figure in one.figures.items()
    ]
    return [*metrics, *map(_score_row, scores), *benchmark_rows(scores)]


def task_scores(judged: Sequence[JudgedSplit]) -> list[TaskScore]:
    """Return each task's score by split and settings; that of MNLI is the mean over the sections that are there."""
    found: dict[tuple[str, str, str, str], list[JudgedSplit]] = {}
    for one in judged:
        if one.spec.in_score:
            split = SECTIONS.get(one.split, one.split)
            key = (one.spec.suite, one.spec.name, split, _as_key(one.settings))
            found.setdefault(key, []).append(one)
    return [
        TaskScore(
            parts[0].spec,
            split,
            parts[0].settings,
            mean_of_samples([part.score for part in parts]) if len(parts) > 1 else parts[0].score,
            tuple(part.split for part in parts),
            _part_words(parts, split),
        )
        for (_, _, split, _), parts in found.items()
    ]


def benchmark_rows(scores: Sequence[TaskScore]) -> Iterator[MetricRow]:
    """Return the unweighted mean over the tasks judged, for each split and benchmark.

    A task answered in several ways (templates, shots) counts with the mean over them; where all tasks were
    answered in the same several ways (runs), each way has a row of its own.
    """
    for suite in TITLES:
        for split in dict.fromkeys(one.split for one in scores if one.spec.suite == suite):
            there = [one for one in scores if (one.spec.suite, one.split) == (suite, split)]
            tasks: dict[str, set[str]] = defaultdict(set)
            ways: dict[str, list[TaskScore]] = defaultdict(list)
            for one in there:
                way = _as_key(one.settings)
                tasks[one.spec.name].add(way)
                ways[way].append(one)
            alike = all(of_task == ways.keys() for of_task in tasks.values())
            for scored in ways.values() if alike else [there]:
                yield _benchmark_row(suite, split, scored)


def _benchmark_row(suite: str, split: str, scores: Sequence[TaskScore]) -> MetricRow:
    by_task: dict[str, list[TaskScore]] = {}
    for one in scores:
        by_task.setdefault(one.spec.name, []).append(one)
    means = [
        mean_of_answers([one.figure for one in ways]) if len(ways) > 1 else ways[0].figure
        for ways in by_task.values()
    ]
    tasks = sum(spec.in_score for spec in specs_of(suite))
    settings: dict[str, Any] = {
        "split": split,
        **in_common([one.settings for one in scores]),
        "covers": _covers({name: ways[0].part for name, ways in by_task.items()}, tasks),
        "tasks": ",".join(by_task),
    }
    if several := [name for name, ways in by_task.items() if len(ways) > 1]:
        settings["averaged"] = ",".join(several)
    return mean_of_samples(means).row(TITLES[suite], SCORE, settings)


def _score_row(score: TaskScore) -> MetricRow:
    settings: dict[str, Any] = {"split": score.split, **score.settings}
    if score.sections != (score.split,):
        settings["sections"] = ",".join(score.sections)
    if score.part:
        settings["part"] = score.part
    return score.figure.row(score.spec.name, SCORE, settings)


def _part_words(judged: Sequence[JudgedSplit], split: str) -> str:
    """Return how many of the published rows of a split were judged, both sections of MNLI together; empty of all."""
    instead = next((one.instead for one in judged if one.instead), "")
    return part_words(judged[0].spec, split, sum(one.rows for one in judged), instead)


def part_words(spec: TaskSpec, split: str, found: int, instead: str) -> str:
    """Return of how many published rows so many are there, and what they are instead; empty of all."""
    published = sum(size for section, size in spec.sizes.items() if SECTIONS.get(section, section) == split)
    if split == HELD_OUT:
        return f"{found:,} rows held out of the training set"
    if instead:
        return f"{found:,} rows {instead} for {published:,}"
    return f"{found:,} of {published:,} rows" if found < published else ""


def _covers(parts: Mapping[str, str], tasks: int) -> str:
    """Return how many tasks a score is over, and which of them in part.

    >>> _covers({"CB": "", "ReCoRD": "32 of 10,000 rows"}, 8)
    '1 of 8 tasks whole, ReCoRD in part (32 of 10,000 rows)'
    """
    partial = [f"{name} in part ({part})" for name, part in parts.items() if part]
    if not partial:
        return f"{len(parts)} of {tasks} tasks"
    return ", ".join([f"{len(parts) - len(partial)} of {tasks} tasks whole", *partial])


def _as_key(settings: Mapping[str, Any]) -> str:
    return json.dumps(settings, sort_keys=True, default=str)
