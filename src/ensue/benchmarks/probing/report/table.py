"""DiscoEval and SentEval runs as a table for the terminal: a line a task, groups and the average in bold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.probing.report.sheets import Figure, Line, Sheet, lines, mean_layer, sheets
from ensue.benchmarks.probing.report.suites import AVERAGE, published_best_layers
from ensue.report.table import Column, Table

# Short: the whole must fit a terminal of 80 columns.
_METRICS = {"accuracy": "acc.", "pearson": "Pearson", "average": "mean"}


def tables(results: Mapping[str, Any], folder: Path | None = None) -> list[Table]:
    """Return the table of a run; each protocol has columns of its own."""
    found = sheets(results)
    return [_table(found)] if found else []


def _table(sheets: Sequence[Sheet]) -> Table:
    first = sheets[0]
    with_metric = any(line.metric != "accuracy" for sheet in sheets for line in lines(sheet))
    columns = [Column("task", words=True), *([Column("metric", words=True)] if with_metric else [])]
    for sheet in sheets:
        test = f"{sheet.protocol}\ntest" if len(sheets) > 1 else "test"
        # There is no room for two intervals; the report has them.
        interval = ["95 %\ninterval"] if len(sheets) == 1 else []
        columns += map(Column, [*(["layer"] if sheet.several_layers else []), "dev", test, *interval])
    table = Table(
        [*columns, Column("n")],
        title=f"{first.suite.title} · {first.name}",
        caption=" ".join(words for sheet in sheets for words in _caption(sheet, several=len(sheets) > 1)),
    )
    by_name = [{line.name: line for line in lines(sheet)} for sheet in sheets]
    names = max(by_name, key=len)
    for name, line in names.items():
        found = [each.get(name) for each in by_name]
        cells = [cell for sheet, each in zip(sheets, found, strict=True) for cell in _cells(sheet, each)]
        if len(sheets) == 1:
            cells.append(_interval(found[0]))
        metric = "" if line.missing else _METRICS.get(line.metric, line.metric)
        table.add(
            _name(line),
            *([metric] if with_metric else []),
            *cells,
            next((each.test.n for each in found if each and each.test), None),
            tone="" if line.kind == "task" else "strong",
            section=line.kind == AVERAGE,
        )
    return table


def _name(line: Line) -> str:
    return f"  {line.name}" if line.kind == "task" else line.name


def _cells(sheet: Sheet, line: Line | None) -> list[str]:
    if line is None or line.missing:
        blank = ["", "missing" if line else "–"]
        return ["", *blank] if sheet.several_layers else blank
    mark = "*" if line.dev is None else ""
    layer = [f"{line.layer}{mark}"] if sheet.several_layers else []
    return [*layer, _value(line.dev), f"{_value(line.test)}{_note_mark(line)}"]


def _note_mark(line: Line) -> str:
    """A dagger where something was taken away, so that the figure is not read as the usual one."""
    return "†" if line.test and line.test.ablation else ""


def _value(figure: Figure | None) -> str:
    return "–" if figure is None else f"{figure.value:.3f}"


def _interval(line: Line | None) -> str:
    figure = line.test if line else None
    if figure is None or figure.low is None or figure.high is None:
        return "" if line and line.missing else "–"
    return f"{figure.low:.3f}–{figure.high:.3f}"


def _caption(sheet: Sheet, *, several: bool) -> list[str]:
    told = lines(sheet)
    words = []
    if sheet.protocol:
        words.append(f"Protocol {sheet.protocol}.")
    if several:
        words[-1:] = [f"Protocol {sheet.protocol}:"]
    if len(sheet.layers) == 1:
        words.append(f"Layer {sheet.layers[0]}.")
    averages = [line for line in told if line.kind == AVERAGE]
    if averages and averages[0].test:
        covered = len(averages[0].test.tasks)
        words.append(f"The average covers {covered} of {len(sheet.suite.tasks)} tasks.")
    if sheet.missing:
        words.append("Averages are of what is there.")
    taken = dict.fromkeys(note for line in told if line.test for note in line.test.ablation)
    if taken:
        words.append(f"†: {', '.join(taken)}.")
    if sheet.limit:
        words.append(f"Only the first {sheet.limit:,} lines of each file.")
    return [*words, *_layer_words(sheet, told)]


def _layer_words(sheet: Sheet, told: Sequence[Line]) -> list[str]:
    if not sheet.several_layers:
        return []
    words = [f"Of {len(sheet.layers)} layers, each line's is the best on dev."]
    if any(line.dev is None and not line.missing for line in told):
        words.append("*: no dev split, so the layer best on dev for all others.")
    mean = mean_layer(sheet)
    if mean is not None:
        paper = ", ".join(
            f"{model} {layer:.1f}" for model, layer in published_best_layers(sheet.suite).items()
        )
        words.append(
            f"Mean best layer of {mean.tasks} tasks: {mean.layer:.1f} (published, table 3: {paper})."
        )
    return words
