"""The paper's tables 2, 4 and 6 with measured runs in them, one protocol a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensue.benchmarks.probing.report.sheet import AVERAGE, ProbingSheet, RunFigure, Suite
from ensue.benchmarks.published import facts_of, published
from ensue.report.figure import Figure

# What is averaged over the columns that all of a table's runs have whole, where the paper's average is not to be had.
SHARED = "shared"
_HEADS = {"PDTB/explicit": "PDTB-E", "PDTB/implicit": "PDTB-I", "RST": "RST-DT", SHARED: "mean of these"}
_ABLATED = {"SP": ("context", "without context"), "DC": ("hidden", "without a hidden layer")}


class SystemRow(NamedTuple):
    """A line of table 2; `group` is measured, or what the paper calls its line: ours, human or nothing."""

    name: str
    group: str
    entries: dict[str, RunFigure]

    @property
    def published(self) -> bool:
        return self.group != "measured"


class Systems(NamedTuple):
    """Table 2: the columns in which any run has a figure; `shared` are those that the shared mean is over."""

    columns: list[str]
    rows: list[SystemRow]
    shared: list[str]

    @property
    def measured(self) -> list[SystemRow]:
        return [row for row in self.rows if not row.published]

    @property
    def published(self) -> list[SystemRow]:
        return [row for row in self.rows if row.published]

    @property
    def partly(self) -> list[str]:
        """Tasks that a column should have taken in and did not."""
        return sorted({name for row in self.rows for entry in row.entries.values() for name in entry.lacking})

    @property
    def marks(self) -> list[str]:
        """What was taken away from figures of the runs."""
        words = [words for row in self.rows for entry in row.entries.values() for words in entry.ablation]
        return list(dict.fromkeys(words))


class AblationRow(NamedTuple):
    """A line of table 4 or 6."""

    name: str
    words: str
    published: bool
    figure: Figure


class Ablation(NamedTuple):
    """Table 4 or 6: what its task is, and published and measured lines."""

    task: str
    table: str
    rows: list[AblationRow]


def column_words(name: str) -> str:
    """Return a column as the paper heads it; the mean over shared columns is explained beside it.

    >>> column_words("PDTB/explicit"), column_words("SP"), column_words("RST")
    ('PDTB-E', 'SP', 'RST-DT')
    """
    return _HEADS.get(name, name)


def paper_layers(suite: Suite) -> str:
    """Return the suite's line of table 3 in words."""
    layers = facts_of(suite.package)["best_layers"]
    return ", ".join(f"{model} {layer:.1f}" for model, layer in layers.items())


def by_domain(suite: Suite) -> dict[str, dict[str, float]]:
    """Return table 5, model by model: accuracies by task and group, which only DiscoEval has."""
    found: dict[str, dict[str, float]] = {}
    for figure in published(suite.package):
        if figure.table == "5":
            found.setdefault(figure.system, {})[figure.task] = figure.value
    return found


def systems_of(sheets: Sequence[ProbingSheet]) -> Systems:
    """Put runs of one protocol after the published systems, where those were measured by that protocol."""
    suite = sheets[0].suite
    columns = [name for name in suite.columns if any(sheet.column(name) for sheet in sheets)]
    whole = all(_average(sheet) is not None for sheet in sheets)
    shared = [
        name
        for name in columns
        if all((found := sheet.column(name)) and not found.lacking for sheet in sheets)
    ]
    # A mean of one column says nothing new, and SentEval's groups are of different kinds.
    shared = [] if whole or len(shared) < 2 or suite.name != "discoeval" else shared
    wanted = [*columns, *([AVERAGE] if whole else [])]
    rows = _published_rows(suite, wanted, shared) if is_as_published(sheets) else []
    rows += [_measured_row(sheet, columns, shared) for sheet in sheets]
    return Systems([*wanted, *([SHARED] if shared else [])], rows, shared)


def is_as_published(sheets: Sequence[ProbingSheet]) -> bool:
    """Return whether runs were made by the protocol of the published figures."""
    return all(sheet.protocol in ("", "paper") for sheet in sheets)


def _published_rows(suite: Suite, wanted: Sequence[str], shared: Sequence[str]) -> list[SystemRow]:
    """Return the lines of table 2, and the human one of table 5 where the suite has it."""
    rows: dict[str, SystemRow] = {}
    for figure in published(suite.package):
        name = figure.system if figure.table == "2" else f"{figure.system} (table {figure.table})"
        if figure.task in wanted and (figure.table == "2" or figure.group == "human"):
            row = rows.setdefault(name, SystemRow(name, figure.group, {}))
            row.entries[figure.task] = RunFigure(Figure(figure.value))
    for row in rows.values():
        if shared and all(name in row.entries for name in shared):
            row.entries[SHARED] = RunFigure(Figure(_mean(row, shared)))
    return list(rows.values())


def _measured_row(sheet: ProbingSheet, columns: Sequence[str], shared: Sequence[str]) -> SystemRow:
    layer = sheet.common_layer
    entries = {name: found for name in columns if (found := sheet.column(name)) is not None}
    row = SystemRow(sheet.name if layer is None else f"{sheet.name}, layer {layer}", "measured", entries)
    if (average := _average(sheet)) is not None:
        entries[AVERAGE] = average
    if shared:
        tasks = {task for name in shared for task in sheet.suite.columns[name]}
        own = sheet.at(AVERAGE, "test", layer)
        taken = tuple(dict.fromkeys(words for name in shared for words in entries[name].ablation))
        # The run's own average, which has an interval, wherever it is over the very same tasks.
        if own is not None and set(own.tasks) == tasks:
            entries[SHARED] = own._replace(lacking=())
        else:
            entries[SHARED] = RunFigure(Figure(_mean(row, shared)), ablation=taken)
    return row


def _mean(row: SystemRow, columns: Sequence[str]) -> float:
    return sum(row.entries[name].value for name in columns) / len(columns)


def _average(sheet: ProbingSheet) -> RunFigure | None:
    """Return the average of table 2, which is over all tasks or it is another number."""
    found = sheet.at(AVERAGE, "test", sheet.common_layer)
    return None if found is None or set(found.tasks) != set(sheet.suite.tasks) else found


def ablations(sheets: Sequence[ProbingSheet]) -> list[Ablation]:
    """Return tables 4 and 6 for what a run was asked to do without; the paper's lines under its protocol only."""
    found = []
    for group, (setting, without) in _ABLATED.items():
        rows = [row for sheet in sheets for row in _measured_ablation(sheet, group, without)]
        if any(row.words == without for row in rows):
            printed = [one for one in published(sheets[0].suite.package) if one.task == group]
            printed = [one for one in printed if one.table in ("4", "6")]
            words = {"no": without, "yes": _with(without)}
            paper = [
                AblationRow(one.system, words.get(one.settings.get(setting, ""), ""), True, Figure(one.value))
                for one in printed
                if is_as_published(sheets)
            ]
            found.append(Ablation(group, printed[0].table, [*paper, *rows]))
    return found


def _measured_ablation(sheet: ProbingSheet, group: str, without: str) -> list[AblationRow]:
    layer = sheet.common_layer
    at_layer = "" if layer is None else f", layer {layer}"
    # A run of one task has no row of its group.
    names = [group] if sheet.at(group, "test", layer) else list(sheet.suite.groups.get(group, ()))
    rows = []
    for name in names:
        if (entry := sheet.at(name, "test", layer)) is not None:
            words = without if without in entry.ablation else _with(without)
            of_task = "" if name == group else f", {name}"
            rows.append(AblationRow(f"{sheet.name}{at_layer}{of_task}", words, False, entry.figure))
    return rows


def _with(without: str) -> str:
    return without.replace("without", "with", 1)
