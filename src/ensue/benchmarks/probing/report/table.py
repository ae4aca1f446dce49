"""DiscoEval and SentEval runs as tables: task by task, beside the published systems, ablations and sets of STS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ensue.benchmarks.probing.report.sheet import AVERAGE, ProbingSheet, RunFigure, TaskLine, read_sheet
from ensue.benchmarks.probing.report.systems import (
    SHARED,
    Ablation,
    SystemRow,
    Systems,
    by_domain,
    column_words,
    paper_layers,
)
from ensue.benchmarks.published import citation
from ensue.report.figure import Figure, fraction
from ensue.report.table import Cell, Column, Content, Table, figure_cell

_METRICS = {"pearson": "Pearson", "spearman": "Spearman", "average": "mean", "f1": "F1"}
_GROUPS = {"": "published", "human": "published", "ours": "the paper’s own"}


def tables(results: Mapping[str, Any], folder: Path | None = None) -> list[Table]:
    """Return the table of a run, for the terminal."""
    sheet = read_sheet(results)
    return [tasks_table(sheet)] if sheet else []


def tasks_table(
    sheet: ProbingSheet, guessing: Mapping[str, float] | None = None, *, wide: bool = False
) -> Table:
    """Return a line a task, groups and the average in bold.

    `guessing` is what always giving the most frequent label of a task would score; where there is room, `wide` adds
    what the paper printed for the same tasks.
    """
    lines, also = sheet.lines, _also(sheet)
    domains = by_domain(sheet.suite) if wide and sheet.protocol == "paper" else {}
    if not any(line.name in figures for line in lines for figures in domains.values()):
        domains = {}
    with_metric = any(line.metric != "accuracy" for line in lines)
    columns = [
        Column("task", words=True),
        *([Column("metric", words=True)] if with_metric else []),
        *([Column("layer", wide="best layer")] if sheet.several_layers else []),
        Column("dev"),
        Column("test"),
        Column("95 %\ninterval"),
        *([Column("also", words=True, in_terminal=False)] if also else []),
        *([Column("most frequent label", in_terminal=False)] if guessing else []),
        Column("n"),
        *(Column(f"published: {model}", published=True) for model in domains),
    ]
    caption = _caption(sheet, bool(guessing), bool(domains))
    table = Table(columns, title=f"{sheet.suite.title} · {sheet.name}", caption=" ".join(caption))
    for line in lines:
        mark = "*" if line.dev is None else ""
        metric = "" if line.missing else _METRICS.get(line.metric, line.metric)
        table.add(
            f"  {line.name}" if line.kind == "task" else line.name,
            *([metric] if with_metric else []),
            *(["" if line.missing else f"{line.layer}{mark}"] if sheet.several_layers else []),
            *(["", "missing", ""] if line.missing else _figures(line)),
            *([also.get(line.name, "")] if also else []),
            *([guessing.get(line.name, "")] if guessing else []),
            line.test.figure.n if line.test else None,
            *(figures.get(line.name, "") for figures in domains.values()),
            tone="" if line.kind == "task" else "strong",
            section=line.kind == AVERAGE,
        )
    return table


def _figures(line: TaskLine) -> list[Content]:
    dev, test = line.dev and line.dev.figure, line.test
    if test is None:
        return [dev, None, None]
    return [dev, Cell(_marked(test, line.kind), value=test.value), test.figure.interval()]


def _marked(entry: RunFigure, kind: str = "") -> str:
    """Write a figure, marked where something was taken away or its average lacks tasks."""
    lacking = "*" if entry.lacking and kind != AVERAGE else ""
    return f"{fraction(entry.value)}{'†' if entry.ablation else ''}{lacking}"


def _also(sheet: ProbingSheet) -> dict[str, str]:
    """Write the other metrics of each line's test split at its layer."""
    found: dict[str, list[str]] = {}
    for line in sheet.lines:
        for (place, what), figure in sheet.also.items():
            if (place.name, place.split, place.layer) == (line.name, "test", line.layer) and " " not in what:
                found.setdefault(line.name, []).append(f"{_METRICS.get(what, what)} {figure.text()}")
    return {name: ", ".join(words) for name, words in found.items()}


def _caption(sheet: ProbingSheet, guessing: bool, domains: bool) -> list[str]:
    words = [f"Protocol {sheet.protocol}."] if sheet.protocol else []
    if len(sheet.layers) == 1:
        words.append(f"Layer {sheet.layers[0]}.")
    averages = [line.test for line in sheet.lines if line.kind == AVERAGE and line.test]
    if averages:
        words.append(f"The average covers {len(averages[0].tasks)} of {len(sheet.suite.tasks)} tasks.")
    if sheet.missing:
        fewer = any(line.kind == "group" and line.test and line.test.lacking for line in sheet.lines)
        words.append(f"Missing, for want of files: {', '.join(sheet.missing)}.")
        words.append(f"Averages are of what is there{', those marked * of fewer tasks' if fewer else ''}.")
    if taken := dict.fromkeys(note for line in sheet.lines if line.test for note in line.test.ablation):
        words.append(f"†: {', '.join(taken)}.")
    if sheet.limit:
        words.append(f"Only the first {sheet.limit:,} lines of each file.")
    words += _layer_words(sheet) if sheet.several_layers else []
    if guessing:
        words.append(
            "Most frequent label: what always giving the commonest label of the test split would score."
        )
    return [*words, *([f"Published: {citation(sheet.suite.package)}, table 5."] if domains else [])]


def _layer_words(sheet: ProbingSheet) -> list[str]:
    mean = sheet.mean_layer
    words = [f"Of {len(sheet.layers)} layers, each line's is the best on dev."]
    if any(line.dev is None and not line.missing for line in sheet.lines):
        chosen = "best on dev for all others" if mean else "the last"
        words.append(f"*: no dev split, so layer {sheet.common_layer}, {chosen}.")
    if mean is not None:
        paper = paper_layers(sheet.suite)
        words.append(
            f"Mean best layer of {mean.tasks} tasks: {mean.layer:.1f} (published, table 3: {paper})."
        )
        if mean.without_dev:
            words.append(f"Without a dev split and so left out: {', '.join(mean.without_dev)}.")
    return words


def systems_table(systems: Systems, sheets: Sequence[ProbingSheet]) -> Table:
    """Return table 2: runs above the published systems."""
    heads = {name: column_words(name) for name in systems.columns}
    heads |= {SHARED: f"mean of {', '.join(map(column_words, systems.shared))}"}
    table = Table(
        [
            Column("system", words=True),
            *([Column("figures", words=True)] if systems.published else []),
            *(Column(heads[name]) for name in systems.columns),
        ],
        caption=" ".join(_systems_caption(systems, sheets)),
    )
    others, ours = (
        [row for row in systems.published if (row.group == "ours") is own] for own in (False, True)
    )
    for rows in (systems.measured, others, ours):
        for row in rows:
            table.add(
                row.name,
                *([_GROUPS.get(row.group, row.group)] if systems.published else []),
                *(_system_cell(row, name) for name in systems.columns),
                tone="published" if row.published else "",
                section=row is rows[0],
            )
    return table


def _system_cell(row: SystemRow, column: str) -> Cell:
    entry = row.entries.get(column)
    if entry is None:
        return Cell(fraction(None))
    # Without zeros: eight columns must fit beside one another.
    ends = [
        fraction(end).removeprefix("0") for end in (entry.figure.low, entry.figure.high) if end is not None
    ]
    return Cell(_marked(entry), "" if row.published else "strong", "–".join(ends), entry.value)


def _systems_caption(systems: Systems, sheets: Sequence[ProbingSheet]) -> list[str]:
    suite = sheets[0].suite
    disco = suite.name == "discoeval"
    words = ["Test figures as fractions, below them 95 % intervals."]
    words.append(
        "SP, BSO and DC stand for the mean over their domains."
        if disco
        else "USS: mean of Pearson correlations over STS 2012–2016; SSS: of two Pearson correlations and an "
        "accuracy; SC and Probing: of accuracies."
    )
    if systems.shared:
        words.append(
            "The run lacks tasks that the paper’s average covers, so the last column takes the mean of the columns "
            "it has whole, for the published systems too (computed here from their printed columns)."
        )
    if systems.partly:
        words.append(f"* The run’s figure is without {', '.join(systems.partly)}.")
    if systems.marks:
        words.append(f"† {', '.join(systems.marks)}, so not what the column usually means.")
    for sheet in sheets:
        if sheet.several_layers:
            layer = (
                f"one layer for all columns, {sheet.common_layer}, best on dev on average."
                if sheet.mean_layer
                else "the last layer, for want of a dev split to choose by."
            )
            words.append(f"{sheet.name}: {layer}")
    if systems.published:
        people = (
            ", the human line from table 5 (one speaker, 50 examples a domain; the printed overall figures of SP and "
            "BSO look exchanged and are kept as printed)"
        )
        words.append(
            f"Published: {citation(suite.package)}, table 2{people if disco else ''}. They come from the paper’s own "
            "encoders and code and are landmarks, not like-for-like comparisons."
        )
    return words


def ablation_table(ablation: Ablation, sheet: ProbingSheet) -> Table:
    """Return table 4 or 6: a task with and without a part of its classifier or input."""
    paper = any(row.published for row in ablation.rows)
    table = Table(
        [
            *(Column(head, words=True) for head in ("system", "figures", "classifier")),
            Column(f"{ablation.task}, test accuracy"),
        ],
        caption=f"Published: {citation(sheet.suite.package)}, table {ablation.table}."
        if paper
        else f"Protocol {sheet.protocol}; the paper’s table {ablation.table} was made by another.",
    )
    for row in ablation.rows:
        table.add(
            row.name,
            "published" if row.published else "measured",
            row.words or None,
            figure_cell(row.figure, strong=not row.published),
            tone="published" if row.published else "",
        )
    return table


def sets_table(sheet: ProbingSheet) -> Table | None:
    """Return the sets of every STS year at the layer the run is reported at, then plain and weighted means."""
    rows: dict[tuple[str, str], dict[str, Figure]] = {}
    for (place, what), figure in sheet.also.items():
        name, _, metric = what.rpartition(" ")
        if name and place.split == "test" and place.layer == sheet.common_layer:
            name = "weighted by size" if name == "weighted" else name
            rows.setdefault((place.name, name), {})[metric] = figure
    heads = [Column("year", words=True), Column("set", words=True)]
    table = Table([*heads, *map(Column, ("Pearson’s r", "95 % interval", "Spearman’s ρ", "pairs"))])
    previous = ""
    for (year, name), found in sorted(rows.items(), key=lambda each: each[0][0]):
        pearson = found.get("pearson")
        interval, n = (pearson.interval(), pearson.n) if pearson else ("", "")
        new = year != previous
        table.add(year if new else "", name, pearson, interval, found.get("spearman"), n, section=new)
        previous = year
    return table if rows else None
