"""The page of GLUE and SuperGLUE runs: which pictures and tables it has, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ensue.benchmarks.nlu.report.scores import Diagnosis, RunScores, ScoreLine, dev_spreads, scores_of
from ensue.benchmarks.nlu.report.systems import diagnostics_table, split_tables
from ensue.benchmarks.nlu.report.table import (
    measure_words,
    metric_word,
    people_table,
    task_table,
    trainings_table,
)
from ensue.benchmarks.nlu.suites import specs_of
from ensue.benchmarks.published import citation
from ensue.errors import EnsueError
from ensue.report.figure import count, fraction
from ensue.report.page import Page, run_names
from ensue.report.results import read_fits, read_results
from ensue.report.svg import Picture, drawn_twice

_MOST_TILES = 4


def nlu_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """Return all that the page needs; nothing where the first run has no results of the known form."""
    results = [read_results(folder) for folder in folders]
    names = run_names(folders, results)
    found = [scores_of(each, name) for each, name in zip(results, names, strict=True)]
    if found[0] is None:
        return {}
    runs = []
    for folder, scores in zip(folders, found, strict=True):
        if scores is None:
            raise EnsueError(f"{folder} has no dev or test figures, so it cannot stand beside others.")
        runs.append(scores)
    first = runs[0]
    facts = [_run_facts(*each) for each in zip(folders, runs, results, strict=True)]
    several = [run for run, about in zip(runs, facts, strict=True) if about["several"]]
    return {
        "suite": first.suite,
        "suite_title": first.title,
        "task_count": sum(spec.in_score for spec in specs_of(first.suite)),
        "names": names,
        "tiles": [_tile(line) for line in _headlines(first)],
        "tables": split_tables(runs),
        "diagnostic_table": diagnostics_table(runs),
        "heat_maps": _heat_maps(runs),
        "spread_pictures": _spread_pictures(runs),
        "varying": list(dict.fromkeys(key for run in several for key in run.varying)),
        "runs": facts,
        "citation": citation(f"ensue.benchmarks.{first.suite}"),
        # No tokens are counted, and to say that there were none would puzzle.
        "results": {key: value for key, value in results[0].items() if key != "tokens" or value},
    }


def _headlines(scores: RunScores) -> list[ScoreLine]:
    """Return the benchmark's score on each split and diagnostics; a few tasks where there is no score of several."""
    totals = [line for line in scores.lines if line.kind == "total" and len(line.tasks) > 1]
    tasks = [] if totals else [line for line in scores.lines if line.kind == "task"]
    return [*totals, *tasks, *scores.diagnostics][:_MOST_TILES]


def _tile(line: ScoreLine) -> dict[str, str]:
    """Return a figure in large, what it is, and what stands below it."""
    if line.kind == "total":
        about = f"{line.name} score on {line.split}, the mean over {line.covers}"
    else:
        several = line.kind == "task" and len(line.measures) > 1
        measures = measure_words(line.measures if several else line.measures[:1], long=True)
        about = f"{line.name}, {line.split}: {'mean of ' if several else ''}{measures}"
    spread, only = line.spread, line.only
    below = [f"{count(line.answers[0].main.n)} examples"]
    if spread:
        below.insert(0, f"mean of {spread.of} answers ± {fraction(spread.sd)}")
    elif only and only.low is not None:
        below.insert(0, f"95 % interval {only.interval()}")
    return {"figure": fraction(line.value), "about": about, "below": " · ".join(below)}


def _run_facts(folder: Path, scores: RunScores, results: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says of one run by itself."""
    fits = list(read_fits(folder))
    return {
        "scores": scores,
        "several": any(len(line.answers) > 1 for line in scores.lines),
        "table": task_table(scores, dev_spreads(fits)),
        "people_table": people_table(results),
        "trainings": len(fits),
        "trainings_table": trainings_table(fits),
        "signature": str(results.get("signature") or ""),
        "remarks": {**(results.get("skipped") or {}), **(results.get("notes") or {})},
    }


def _heat_maps(runs: Sequence[RunScores]) -> list[dict[str, Any]]:
    """Return one for each tagged diagnostic set and split, a column a run that has it."""
    # Drawing needs matplotlib, which takes half a second to import; what only reads does without it.
    from ensue.benchmarks.nlu.report.plots import diagnostic_map

    found: dict[tuple[str, str, str], list[Diagnosis]] = {}
    alone = sum(bool(run.diagnoses) for run in runs) == 1
    for run in runs:
        for one in run.diagnoses:
            name = (one.way or run.name) if alone else f"{run.name}, {one.way}" if one.way else run.name
            found.setdefault((one.task, one.metric, one.split), []).append(one._replace(way=name))
    return [
        {
            "title": f"{task} by phenomenon: {metric_word(metric)}, {split}",
            "picture": drawn_twice(partial(diagnostic_map, columns, f"{task}-{split}".lower())),
        }
        for (task, metric, split), columns in found.items()
    ]


def _spread_pictures(runs: Sequence[RunScores]) -> list[Picture]:
    """Return how far the answers to each task lie apart, a picture a split; runs with one answer to such a task,
    such as people's, are points beside them."""
    from ensue.benchmarks.nlu.report.plots import spread_plot

    pictures = []
    for split in dict.fromkeys(split for run in runs for split in run.splits):
        points = [
            run._replace(lines=several)
            for run in runs
            if (several := [line for line in run.on(split) if line.kind == "task" and line.spread])
        ]
        tasks = {line.name for run in points for line in run.lines}
        beside = [
            run._replace(lines=single)
            for run in runs
            if (single := [line for line in run.on(split) if line.name in tasks and not line.spread])
        ]
        if points:
            pictures.append(drawn_twice(partial(spread_plot, points, beside, split)))
    return pictures


PAGE = Page("ensue.benchmarks.nlu.report", "nlu.html.j2", nlu_facts, takes_runs=True)
