"""Every system on every task: runs and the published systems in one table a split, and in one of diagnostics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ensue.benchmarks.nlu.diagnostics import TAXONOMY
from ensue.benchmarks.nlu.examples import DEV, TEST, TaskSpec
from ensue.benchmarks.nlu.report.scores import (
    MISMATCHED,
    SCORE,
    Block,
    Figure,
    Line,
    Measure,
    Phenomenon,
    Sheet,
    Spread,
    base_split,
    spread_of,
)
from ensue.benchmarks.nlu.suites import TITLES, specs_of
from ensue.benchmarks.published import PublishedFigure, published

HUMAN = "human"


class Cell(NamedTuple):
    """What a system has in a column: its measures as the papers print them, and what is known beyond them."""

    values: tuple[float | None, ...]
    low: float | None = None
    high: float | None = None
    n: int = 0
    spread: Spread | None = None
    covers: str = ""
    digits: int = 3


class SystemRow(NamedTuple):
    """A system's line; cells by the name of the column."""

    name: str
    cells: dict[str, Cell]
    human: bool = False


class Group(NamedTuple):
    """Lines that belong together; `heading` says what they are, `table` where they were published."""

    heading: str
    rows: list[SystemRow]
    table: str = ""


class Column(NamedTuple):
    """A task with its measures, or one measure of a diagnostic set, on one split."""

    name: str
    measures: list[Measure]
    phenomenon: Phenomenon | None = None


class SystemsTable(NamedTuple):
    """The systems on one split; without `measured` lines no run here was judged on it."""

    split: str
    columns: list[Column]
    measured: list[SystemRow]
    published: list[Group]


def split_tables(sheets: Sequence[Sheet]) -> list[SystemsTable]:
    """A table a split: those of the runs first, then those that only published systems were judged on."""
    rows = published(f"ensue.benchmarks.{sheets[0].suite}")
    own = dict.fromkeys(block.split for sheet in sheets for block in sheet.blocks)
    known = {base_split(row.settings["split"]) for row in rows if row.metric == SCORE}
    splits = [*own, *(split for split in (DEV, TEST) if split in known and split not in own)]
    found = [_split_table(split, sheets, rows) for split in splits]
    return [table for table in found if table.measured or table.published]


def _split_table(split: str, sheets: Sequence[Sheet], rows: Sequence[PublishedFigure]) -> SystemsTable:
    suite = sheets[0].suite
    blocks = [(sheet.name, block) for sheet in sheets if (block := sheet.block(split))]
    judged = [line for _, block in blocks for line in _lines(block)]
    # Where no run was judged on this split, the tasks they were judged on elsewhere are of interest.
    lines = judged or [line for sheet in sheets for block in sheet.blocks for line in block.lines]
    names = {line.name for line in lines}
    on_split = [
        row
        for row in rows
        if base_split(row.settings["split"]) == split and not row.settings.get("category", "")
    ]
    columns = []
    for spec in specs_of(suite):
        if spec.in_score and spec.name in names:
            printed = [_measure(row) for row in on_split if row.task == spec.name]
            own = [measure for line in judged if line.name == spec.name for measure in line.measures]
            columns.append(Column(spec.name, _ordered([*own, *printed], spec.metrics)))
    if columns and (not judged or TITLES[suite] in names):
        columns.insert(0, Column(TITLES[suite], []))
    measured = [SystemRow(name, _cells(block, columns)) for name, block in blocks]
    return SystemsTable(split, columns, measured, _published_groups(on_split, columns))


def _measure(row: PublishedFigure) -> Measure:
    if row.task != "MNLI":
        return Measure(row.metric)
    return Measure(row.metric, "mm" if row.settings["split"].endswith(MISMATCHED) else "m")


def _ordered(measures: Sequence[Measure], metrics: Sequence[str]) -> list[Measure]:
    """In the order of the task's metrics; others after them, by name."""
    known = [*metrics, *sorted({one.metric for one in measures} - {*metrics})]
    return sorted(set(measures), key=lambda one: (known.index(one.metric), one.section))


def _cells(block: Block, columns: Sequence[Column]) -> dict[str, Cell]:
    by_name = {line.name: line for line in _lines(block)}
    return {column.name: _cell(by_name[column.name], column) for column in columns if column.name in by_name}


def _lines(block: Block) -> list[Line]:
    return [*block.lines, *([block.total] if block.total else [])]


def _cell(line: Line, column: Column) -> Cell:
    only, there = line.only, line.measures
    # A section of MNLI that was not judged is a gap, so that the other is not taken for both.
    values = tuple(line.mean(one) if one in there else None for one in column.measures) or (line.value,)
    low, high = (only.low, only.high) if only else (None, None)
    covers = "in part" if line.part else line.short_covers
    return Cell(values, low, high, line.answers[0].main.n, line.spread, covers)


def _published_groups(rows: Iterable[PublishedFigure], columns: Sequence[Column]) -> list[Group]:
    """The published systems that have anything in these columns, in the order of their tables."""
    found: dict[tuple[str, str], dict[str, dict[str, dict[Measure, float]]]] = {}
    for row in rows:
        systems = found.setdefault((row.table, row.group), {})
        systems.setdefault(row.system, {}).setdefault(row.task, {})[_measure(row)] = row.value
    groups = []
    for (table, group), systems in found.items():
        lines = [
            SystemRow(system, cells, group == HUMAN)
            for system, figures in systems.items()
            if (cells := _published_cells(figures, columns))
        ]
        if lines:
            groups.append(Group(group, lines, table))
    return groups


def _published_cells(
    figures: Mapping[str, Mapping[Measure, float]], columns: Sequence[Column]
) -> dict[str, Cell]:
    cells = {}
    for column in columns:
        own = figures.get(column.name, {})
        wanted = column.measures or [Measure(SCORE)]
        if any(measure in own for measure in wanted):
            cells[column.name] = Cell(tuple(own.get(measure) for measure in wanted))
    return cells


def diagnostics_table(sheets: Sequence[Sheet]) -> SystemsTable | None:
    """The diagnostic sets' figures over all examples and, where the paper has them, by phenomenon."""
    suite = sheets[0].suite
    tasks = {line.name for sheet in sheets for line in sheet.diagnostics}
    if not tasks:
        return None
    rows = [row for row in published(f"ensue.benchmarks.{suite}") if row.task in tasks]
    columns = [
        Column(f"{spec.name} {metric}", [Measure(metric)])
        for spec in specs_of(suite)
        for metric in _diagnostic_metrics(sheets, spec)
    ]
    phenomena = dict.fromkeys(
        Phenomenon(row.settings.get("category", ""), row.settings.get("tag", ""))
        for row in rows
        if row.settings.get("category", "")
    )
    order = [Phenomenon(category) for category in TAXONOMY]
    columns += [
        Column(f"{place.category} {place.tag}", [], place)
        for place in sorted(phenomena, key=lambda place: order.index(place) if place in order else len(order))
    ]
    measured = [SystemRow(sheet.name, _diagnostic_cells(sheet, columns)) for sheet in sheets]
    splits = dict.fromkeys(line.split for sheet in sheets for line in sheet.diagnostics)
    return SystemsTable(
        " and ".join(splits),
        columns,
        [row for row in measured if row.cells],
        _diagnostic_groups(rows, columns),
    )


def _diagnostic_metrics(sheets: Sequence[Sheet], spec: TaskSpec) -> list[str]:
    lines = [line for sheet in sheets for line in sheet.diagnostics if line.name == spec.name]
    measured = [measure.metric for line in lines for measure in line.measures]
    return list(dict.fromkeys([*spec.metrics, *measured])) if lines else []


def _diagnostic_cells(sheet: Sheet, columns: Sequence[Column]) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for line in sheet.diagnostics:
        for measure in line.measures:
            figures = [answer.measures[measure] for answer in line.answers if measure in answer.measures]
            cells[f"{line.name} {measure.metric}"] = _figures_cell(figures)
    for column in columns:
        figures = [
            one.figures[column.phenomenon] for one in sheet.diagnoses if column.phenomenon in one.figures
        ]
        if figures:
            cells[column.name] = _figures_cell(figures)
    return cells


def _figures_cell(figures: Sequence[Figure]) -> Cell:
    """One figure with its interval, or the mean of several with their spread."""
    first = figures[0]
    if len(figures) == 1:
        return Cell((first.value,), first.low, first.high, first.n)
    spread = spread_of([figure.value for figure in figures], [""] * len(figures))
    return Cell((spread.mean,), n=first.n, spread=spread)


def _diagnostic_groups(rows: Sequence[PublishedFigure], columns: Sequence[Column]) -> list[Group]:
    known = {column.name for column in columns}
    found: dict[tuple[str, str], dict[str, dict[str, Cell]]] = {}
    for row in rows:
        name = (
            f"{row.settings.get('category', '')} {row.settings.get('tag', '')}"
            if row.settings.get("category", "")
            else f"{row.task} {row.metric}"
        )
        if name in known:
            systems = found.setdefault((row.table, row.group), {})
            systems.setdefault(row.system, {})[name] = Cell((row.value,), digits=_digits(row, rows))
    return [
        Group(group, [SystemRow(name, cells, group == HUMAN) for name, cells in systems.items()], table)
        for (table, group), systems in found.items()
    ]


def _place(row: PublishedFigure) -> Phenomenon:
    return Phenomenon(row.settings.get("category", ""), row.settings.get("tag", ""))


def _digits(row: PublishedFigure, rows: Iterable[PublishedFigure]) -> int:
    """As many as are printed: some tables have whole hundredths only."""
    printed = [one.value for one in rows if (one.table, one.metric) == (row.table, row.metric)]
    return 2 if all(round(value, 2) == value for value in printed) else 3
