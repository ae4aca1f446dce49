"""The paper's tables 2, 4 and 6 with measured runs in them, one protocol a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ensue.benchmarks.discoeval.published import published
from ensue.benchmarks.probing.report.sheets import Figure, Sheet, common_layer
from ensue.benchmarks.probing.report.suites import AVERAGE, Column, Suite, System, column_words, systems

# What is averaged over the columns that all of a table's runs have whole, where the paper's average is not to be had.
SHARED = "shared"
_ABLATED = {"SP": ("context", "without context"), "DC": ("hidden", "without a hidden layer")}


class SystemRow(NamedTuple):
    """A line of table 2, published or measured."""

    name: str
    published: bool
    figures: dict[str, Figure]
    human: bool = False
    own: bool = False


class SystemsTable(NamedTuple):
    """Table 2: the columns in which any run has a figure; `shared` names those that the shared mean is over."""

    columns: list[str]
    rows: list[SystemRow]
    shared: list[str]
    marks: list[str]

    @property
    def partly(self) -> list[str]:
        """Tasks that a column should have taken in and did not."""
        return sorted(
            {name for row in self.rows for figure in row.figures.values() for name in figure.lacking}
        )

    @property
    def measured(self) -> list[SystemRow]:
        return [row for row in self.rows if not row.published]


class AblationRow(NamedTuple):
    """A line of table 4 or 6."""

    name: str
    words: str
    published: bool
    figure: Figure


class Ablation(NamedTuple):
    """Table 4 or 6: what its task is, and published and measured lines."""

    task: str
    table: int
    rows: list[AblationRow]


def systems_table(sheets: Sequence[Sheet]) -> SystemsTable:
    """The runs, of one protocol, after the published systems wherever those were measured by that protocol."""
    suite = sheets[0].suite
    layers = [common_layer(sheet) for sheet in sheets]
    places = list(zip(sheets, layers, strict=True))
    columns = [column for column in suite.columns if any(s.column(column, n) for s, n in places)]
    names = [column.name for column in columns]
    whole = all(_average(sheet, layer) is not None for sheet, layer in places)
    shared = [c for c in columns if all(_is_whole(sheet, c, layer) for sheet, layer in places)]
    # A mean of one column says nothing new, and SentEval's groups are of different kinds.
    shared = [] if whole or len(shared) < 2 or suite.name != "discoeval" else shared
    shown = [*names, *([AVERAGE] if whole else []), *([SHARED] if shared else [])]
    paper = systems(suite) if _as_published(sheets) else []
    rows = [row for system in paper if (row := _published_row(system, columns, shared, whole)).figures]
    rows += [_measured_row(sheet, layer, columns, shared) for sheet, layer in places]
    marks = [words for row in rows for figure in row.figures.values() for words in figure.ablation]
    return SystemsTable(shown, rows, [column_words(c.name) for c in shared], list(dict.fromkeys(marks)))


def _published_row(
    system: System, columns: Sequence[Column], shared: Sequence[Column], whole: bool
) -> SystemRow:
    wanted = [*(column.name for column in columns), *([AVERAGE] if whole else [])]
    figures = {name: Figure(system.figures[name]) for name in wanted if name in system.figures}
    if shared and all(column.name in figures for column in shared):
        figures[SHARED] = Figure(_mean(figures[column.name].value for column in shared))
    return SystemRow(system.name, True, figures, system.human, system.own)


def _measured_row(
    sheet: Sheet, layer: int | None, columns: Sequence[Column], shared: Sequence[Column]
) -> SystemRow:
    figures = {c.name: found for c in columns if (found := sheet.column(c, layer)) is not None}
    if (average := _average(sheet, layer)) is not None:
        figures[AVERAGE] = average
    if shared:
        tasks = {task for column in shared for task in column.tasks}
        own = sheet.at(AVERAGE, "test", layer)
        taken = tuple(dict.fromkeys(words for column in shared for words in figures[column.name].ablation))
        mean = Figure(_mean(figures[column.name].value for column in shared), ablation=taken)
        # The run's own average, which has an interval, wherever it is over the very same tasks.
        usable = own is not None and set(own.tasks) == tasks
        figures[SHARED] = own._replace(lacking=()) if own is not None and usable else mean
    name = sheet.name if layer is None else f"{sheet.name}, layer {layer}"
    return SystemRow(name, False, figures)


def _average(sheet: Sheet, layer: int | None) -> Figure | None:
    """The average of table 2, which is over all tasks or it is another number."""
    found = sheet.at(AVERAGE, "test", layer)
    return None if found is None or set(found.tasks) != set(sheet.suite.tasks) else found


def _is_whole(sheet: Sheet, column: Column, layer: int | None) -> bool:
    found = sheet.column(column, layer)
    return found is not None and not found.lacking


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def ablations(sheets: Sequence[Sheet]) -> list[Ablation]:
    """Tables 4 and 6 for what any of the runs was asked to do without; the paper's lines under its protocol only."""
    suite, found = sheets[0].suite, []
    for group, (setting, without) in _ABLATED.items():
        rows = [row for sheet in sheets for row in _measured_ablation(sheet, group, without)]
        if any(row.words == without for row in rows):
            table, paper = _published_ablation(suite, group, setting, without)
            found.append(Ablation(group, table, [*(paper if _as_published(sheets) else []), *rows]))
    return found


def _as_published(sheets: Sequence[Sheet]) -> bool:
    return all(sheet.protocol in ("", "paper") for sheet in sheets)


def _measured_ablation(sheet: Sheet, group: str, without: str) -> list[AblationRow]:
    layer = common_layer(sheet)
    at_layer = "" if layer is None else f", layer {layer}"
    # A run of one task has no row of its group.
    names = [group] if sheet.at(group, "test", layer) else list(sheet.suite.groups.get(group, ()))
    rows = []
    for name in names:
        if (figure := sheet.at(name, "test", layer)) is not None:
            words = without if without in figure.ablation else _with(without)
            of_task = "" if name == group else f", {name}"
            rows.append(AblationRow(f"{sheet.name}{at_layer}{of_task}", words, False, figure))
    return rows


def _published_ablation(
    suite: Suite, group: str, setting: str, without: str
) -> tuple[int, list[AblationRow]]:
    rows, table = [], 0
    for row in published() if suite.name == "discoeval" else ():
        if row.table in (4, 6) and row.task == group:
            table = row.table
            words = {"no": without, "yes": _with(without)}.get(str(dict(row.setting).get(setting)), "")
            rows.append(AblationRow(row.model, words, True, Figure(row.accuracy)))
    return table, rows


def _with(without: str) -> str:
    return without.replace("without", "with", 1)
