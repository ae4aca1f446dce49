"""Every system on every task: runs and the published systems in one table a split, and in one of diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from ensue.benchmarks.nlu.diagnostics import TAXONOMY
from ensue.benchmarks.nlu.examples import DEV, TEST
from ensue.benchmarks.nlu.report.scores import (
    Measure,
    Phenomenon,
    RunScores,
    Spread,
    base_split,
    measure_of,
    spread_of,
)
from ensue.benchmarks.nlu.report.table import measure_words, metric_word
from ensue.benchmarks.nlu.scores import SCORE
from ensue.benchmarks.nlu.suites import TITLES, specs_of
from ensue.benchmarks.published import PublishedFigure, published
from ensue.report.figure import Figure, fraction
from ensue.report.table import Cell, Column, Table


class SystemsTable(NamedTuple):
    """The systems on one split; says whether any were `measured` here and whether any are `published`."""

    split: str
    table: Table
    measured: bool
    published: bool


class _FigurePlace(NamedTuple):
    """What a figure is of."""

    task: str
    measure: Measure
    phenomenon: Phenomenon = Phenomenon()


class _SystemsColumn(NamedTuple):
    """A task with its measures, a benchmark's score, or one measure of a diagnostic set."""

    heading: str
    places: list[_FigurePlace]


# A run's cell in a column, None where it has nothing there.
_CellOf = Callable[[RunScores, _SystemsColumn], Cell | None]


def split_tables(runs: Sequence[RunScores]) -> list[SystemsTable]:
    """Return a table a split: those of the runs first, then those that only published systems were judged on."""
    printed = published(f"ensue.benchmarks.{runs[0].suite}")
    own = dict.fromkeys(split for run in runs for split in run.splits)
    known = {base_split(row.settings["split"]) for row in printed if row.metric == SCORE}
    splits = [*own, *(split for split in (DEV, TEST) if split in known and split not in own)]
    found = [_split_table(split, runs, printed) for split in splits]
    return [table for table in found if table.measured or table.published]


def _split_table(split: str, runs: Sequence[RunScores], printed: Sequence[PublishedFigure]) -> SystemsTable:
    suite = runs[0].suite
    judged = [line for run in runs for line in run.on(split)]
    # Where no run was judged on this split, the tasks they were judged on elsewhere are of interest.
    names = {
        line.name for line in judged or [line for run in runs for line in run.lines if line.kind == "task"]
    }
    overall = [row for row in printed if "category" not in row.settings]
    on_split = [row for row in overall if base_split(row.settings["split"]) == split]
    columns = []
    for spec in specs_of(suite):
        if spec.in_score and spec.name in names:
            measures = {_place_of(row).measure for row in on_split if row.task == spec.name}
            measures |= {measure for line in judged if line.name == spec.name for measure in line.measures}
            ordered = _ordered(measures, spec.metrics)
            heading = f"{spec.name}\n{measure_words(ordered)}"
            columns.append(_SystemsColumn(heading, [_FigurePlace(spec.name, measure) for measure in ordered]))
    title = TITLES[suite]
    if columns and (not judged or title in names):
        columns.insert(0, _SystemsColumn(f"{title}\nscore", [_FigurePlace(title, Measure(SCORE))]))

    def cell_of(run: RunScores, column: _SystemsColumn) -> Cell | None:
        line = next((line for line in run.on(split) if line.name == column.places[0].task), None)
        if line is None:
            return None
        # A section of MNLI that was not judged is a gap, so that the other is not taken for both.
        measures = [place.measure for place in column.places]
        values = [line.mean(one) if one in line.measures else None for one in measures]
        covers = "in part" if line.part else line.short_covers.replace(" tasks", "")
        return _cell([line.value] if line.kind == "total" else values, line.only, line.spread, covers)

    return _table(split, columns, [run for run in runs if split in run.splits], cell_of, on_split)


def _ordered(measures: Iterable[Measure], metrics: Sequence[str]) -> list[Measure]:
    """Return measures in the order of the task's metrics; others after them, by name."""
    known = [*metrics, *sorted({one.metric for one in measures} - {*metrics})]
    return sorted(measures, key=lambda one: (known.index(one.metric), one.section))


def diagnostics_table(runs: Sequence[RunScores]) -> SystemsTable | None:
    """Return the diagnostic sets' figures over all examples and, where the paper has them, by phenomenon."""
    suite = runs[0].suite
    lines = [line for run in runs for line in run.diagnostics]
    if not lines:
        return None
    printed = [
        row for row in published(f"ensue.benchmarks.{suite}") if row.task in {line.name for line in lines}
    ]
    columns = []
    for spec in specs_of(suite):
        own = [measure.metric for line in lines if line.name == spec.name for measure in line.measures]
        for metric in dict.fromkeys([*spec.metrics, *own]) if own else ():
            place = _FigurePlace(spec.name, Measure(metric))
            columns.append(_SystemsColumn(f"{spec.name}\n{metric_word(metric)}", [place]))
    order = [Phenomenon(category) for category in TAXONOMY]
    by_phenomenon = dict.fromkeys(_place_of(row) for row in printed if "category" in row.settings)
    columns += [
        _SystemsColumn(place.phenomenon.tag or place.phenomenon.category, [place])
        for place in sorted(by_phenomenon, key=lambda one: (*order, one.phenomenon).index(one.phenomenon))
    ]
    splits = dict.fromkeys(line.split for line in lines)
    measured = [run for run in runs if run.diagnostics]
    return _table(" and ".join(splits), columns, measured, _diagnostic_cell, printed)


def _diagnostic_cell(run: RunScores, column: _SystemsColumn) -> Cell | None:
    """Return one figure with its interval, or the mean of several with their spread."""
    (place,) = column.places
    if place.phenomenon == Phenomenon():
        own = [line for line in run.diagnostics if line.name == place.task and place.measure in line.measures]
        answers = own[-1].answers if own else []
        figures = [answer.measures[place.measure] for answer in answers if place.measure in answer.measures]
    else:
        figures = [one.figures[place.phenomenon] for one in run.diagnoses if place.phenomenon in one.figures]
    if len(figures) < 2:
        return _cell([figures[0].value], figures[0]) if figures else None
    spread = spread_of([figure.value for figure in figures], [""] * len(figures))
    return _cell([spread.mean], None, spread)


def _table(
    split: str,
    columns: Sequence[_SystemsColumn],
    runs: Sequence[RunScores],
    cell_of: _CellOf,
    printed: Sequence[PublishedFigure],
) -> SystemsTable:
    """Put runs and the published systems that have anything in the columns below one another."""
    groups: dict[tuple[str, str], dict[str, dict[_FigurePlace, PublishedFigure]]] = {}
    wanted = {place for column in columns for place in column.places}
    for row in printed:
        if _place_of(row) in wanted:
            systems = groups.setdefault((row.table, row.group), {})
            systems.setdefault(row.system, {})[_place_of(row)] = row
    table = Table([Column("system", words=True), *(Column(column.heading) for column in columns)])
    if runs and groups:
        table.add_heading(f"measured here, {split}")
    for run in runs:
        table.add(run.name, *(cell_of(run, column) for column in columns))
    for (where, group), systems in groups.items():
        source = where if where.startswith("section") else f"table {where}"
        table.add_heading(f"published, {split}: {group} ({source})", tone="published")
        for system, figures in systems.items():
            cells = (
                _published_cell([figures.get(place) for place in column.places], printed)
                for column in columns
            )
            table.add(system, *cells, tone="published")
    return SystemsTable(split, table, bool(runs), bool(groups))


def _cell(
    values: Sequence[float | None], only: Figure | None, spread: Spread | None = None, covers: str = ""
) -> Cell:
    below = f"± {_short(spread.sd)}" if spread else ""
    if not spread and only and only.low is not None and only.high is not None:
        below = f"{_short(only.low)}–{_short(only.high)}"
    value = values[0] if len(values) == 1 else None
    return Cell("/".join(map(fraction, values)), "strong", " · ".join(filter(None, (below, covers))), value)


def _short(value: float) -> str:
    """Write a number without its zero: ten columns must fit beside one another."""
    return fraction(value).replace("0.", ".", 1)


def _published_cell(
    figures: Sequence[PublishedFigure | None], printed: Iterable[PublishedFigure]
) -> Cell | None:
    """Return figures with as many digits as are printed: some tables have whole hundredths only."""
    found = [figure for figure in figures if figure is not None]
    if not found:
        return None
    alike = [row.value for row in printed if (row.table, row.metric) == (found[0].table, found[0].metric)]
    digits = 2 if all(round(value, 2) == value for value in alike) else 3
    words = "/".join(fraction(None if one is None else one.value, digits) for one in figures)
    return Cell(words, value=found[0].value if len(figures) == 1 else None)


def _place_of(row: PublishedFigure) -> _FigurePlace:
    measure = measure_of(row.task, row.metric, row.settings["split"])
    return _FigurePlace(row.task, measure, Phenomenon.of(row.settings))
