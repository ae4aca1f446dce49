"""The page of GLUE and SuperGLUE runs: which pictures and tables it has, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ensue.benchmarks.nlu.report.fits import Training, dev_spreads, trainings
from ensue.benchmarks.nlu.report.published import diagnostics_table, split_tables
from ensue.benchmarks.nlu.report.scores import Line, Sheet, Spread, phenomena
from ensue.benchmarks.nlu.report.sheets import sheet_of
from ensue.benchmarks.nlu.report.table import (
    all_lines,
    constant_words,
    measure_words,
    value_words,
    without_words,
)
from ensue.benchmarks.nlu.suites import specs_of
from ensue.benchmarks.published import citation
from ensue.errors import EnsueError
from ensue.report.page import Page, run_names
from ensue.report.results import read_fits, read_results
from ensue.report.svg import Picture, drawn_twice

_METRICS = {
    "accuracy": "accuracy",
    "f1": "F1",
    "f1a": "F1a",
    "em": "EM",
    "mcc": "Matthews",
    "r3": "R3",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "gender_parity": "gender parity",
}
# More trainings and answers than these are counted; the files of the run have them.
MOST_TRAININGS = 300
_MOST_TILES = 4


class RunFacts(NamedTuple):
    """What the page says of one run by itself."""

    sheet: Sheet
    lines: list[Line]
    several: bool
    trainings: list[Training]
    trainings_left_out: int
    dev_spreads: dict[tuple[str, str], Spread]
    without: str
    throughout: str
    signature: str
    skipped: dict[str, int]
    notes: dict[str, int]


class HeatMap(NamedTuple):
    """A diagnostic set by phenomenon, a column a run."""

    task: str
    metric: str
    split: str
    picture: Picture


class SpreadPicture(NamedTuple):
    """How far the answers to each task lie apart, on one split."""

    split: str
    picture: Picture


def nlu_facts(folders: Sequence[Path], annotations: Path | None) -> dict[str, Any]:
    """All that the page needs; nothing where the first run has no results of the known form."""
    results = [read_results(folder) for folder in folders]
    names = run_names(folders, results)
    found = [sheet_of(each, name) for each, name in zip(results, names, strict=True)]
    if found[0] is None:
        return {}
    sheets = []
    for folder, sheet in zip(folders, found, strict=True):
        if sheet is None:
            raise EnsueError(f"{folder} has no dev or test figures, so it cannot be told beside others.")
        sheets.append(sheet)
    first = sheets[0]
    return {
        "suite": first.suite,
        "suite_title": first.title,
        "task_count": sum(spec.in_score for spec in specs_of(first.suite)),
        "about": {spec.name: spec.about for spec in specs_of(first.suite)},
        "names": names,
        "tiles": _tiles(first),
        "tables": split_tables(sheets),
        "diagnostic_table": diagnostics_table(sheets),
        "heat_maps": heat_maps(sheets),
        "spread_pictures": _spread_pictures(sheets),
        "runs": [
            _run_facts(folder, sheet, each)
            for folder, sheet, each in zip(folders, sheets, results, strict=True)
        ],
        "citation": citation(f"ensue.benchmarks.{first.suite}"),
        "measure_words": lambda measures: measure_words(measures, _METRICS),
        "short_words": measure_words,
        "minus": value_words,
        "metric_word": lambda name: _METRICS.get(name, name),
        # No tokens are counted, and to say that there were none would puzzle.
        "results": {key: value for key, value in results[0].items() if key != "tokens" or value},
    }


def _tiles(sheet: Sheet) -> list[Line]:
    """The benchmark's score on each split, then diagnostics; a few tasks where there is no score of several."""
    totals = [block.total for block in sheet.blocks if block.total and len(block.total.tasks) > 1]
    tasks = [] if totals else [line for block in sheet.blocks for line in block.lines]
    return [*totals, *tasks, *sheet.diagnostics][:_MOST_TILES]


def _run_facts(folder: Path, sheet: Sheet, results: Mapping[str, Any]) -> RunFacts:
    found = trainings(read_fits(folder))
    lines = all_lines(sheet)
    return RunFacts(
        sheet=sheet,
        lines=lines,
        several=any(len(line.answers) > 1 for line in lines),
        trainings=found[:MOST_TRAININGS],
        trainings_left_out=max(0, len(found) - MOST_TRAININGS),
        dev_spreads=dev_spreads(found),
        without=" ".join(without_words(sheet)),
        throughout=constant_words(sheet),
        signature=str(results.get("signature") or ""),
        skipped=results.get("skipped") or {},
        notes=results.get("notes") or {},
    )


def heat_maps(sheets: Sequence[Sheet]) -> list[HeatMap]:
    """One for each tagged diagnostic set and split, whichever of the runs have it."""
    found: dict[tuple[str, str, str], list[tuple[Sheet, int]]] = {}
    for sheet in sheets:
        for place, one in enumerate(sheet.diagnoses):
            found.setdefault((one.task, one.metric, one.split), []).append((sheet, place))
    return [
        HeatMap(task, metric, split, _heat_picture(f"{task}-{split}".lower(), chosen))
        for (task, metric, split), chosen in found.items()
    ]


def _heat_picture(name: str, chosen: Sequence[tuple[Sheet, int]]) -> Picture:
    # Drawing needs matplotlib, which takes half a second to import; what only reads does without it.
    from ensue.benchmarks.nlu.report.plots import HeatColumn, diagnostic_map

    columns = []
    for sheet, place in chosen:
        one = sheet.diagnoses[place]
        alone = len({each.name for each, _ in chosen}) == 1 and one.way
        label = one.way if alone else f"{sheet.name}, {one.way}" if one.way else sheet.name
        columns.append(HeatColumn(label, one))
    places = {place for column in columns for place in column.diagnosis.figures}
    rows = [place for place in phenomena() if place in places]
    sizes = [
        _sizes([column.diagnosis.figures[place].n for column in columns if place in column.diagnosis.figures])
        for place in rows
    ]
    return drawn_twice(lambda width: diagnostic_map(columns, rows, sizes, name=name, width=width))


def _sizes(counts: Sequence[int]) -> str:
    """How many examples a row is over; runs of a part of the data have fewer."""
    low, high = min(counts), max(counts)
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def _spread_pictures(sheets: Sequence[Sheet]) -> list[SpreadPicture]:
    from ensue.benchmarks.nlu.report.plots import SpreadPoints, spread_plot

    pictures = []
    for split in dict.fromkeys(block.split for sheet in sheets for block in sheet.blocks):
        runs = [
            SpreadPoints(sheet.name, several)
            for sheet in sheets
            if (block := sheet.block(split)) and (several := [line for line in block.lines if line.spread])
        ]
        if runs:

            def draw(width: float, runs: list[SpreadPoints] = runs, split: str = split) -> str:
                return spread_plot(runs, split, name=f"spread-{split}", width=width)

            pictures.append(SpreadPicture(split, drawn_twice(draw)))
    return pictures


PAGE = Page("ensue.benchmarks.nlu.report", "nlu.html.j2", nlu_facts, takes_runs=True)
