"""The pictures of DiscoEval and SentEval runs: task by layer as a heat map, and runs beside published systems."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ensue.benchmarks.probing.report.sheet import ProbingSheet, TaskLine
from ensue.benchmarks.probing.report.systems import SystemRow, Systems, column_words
from ensue.report.svg import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    MARKERS,
    ORANGE,
    PAPER,
    STYLE,
    as_svg,
    draw_legend,
    error_bars,
    in_panels,
    is_narrow,
    legend_entries,
    name_rows,
)

# Hollow, so that they cannot be taken for measured ones.
_PUBLISHED_MARKERS = ("<", ">", "s", "d", "^", "v", "p", "h")
# More layers than these are drawn in several rows of panels, so that numbers in cells stay readable.
_WIDE_LAYERS, _NARROW_LAYERS = 17, 7
_ROW = 0.235
# Through this much colour the ink of the page reads on light and on dark alike.
_FAINTEST, _STRONGEST = 0.05, 0.62


def heat_map(sheet: ProbingSheet, *, name: str, width: float) -> str:
    """Draw test figures by task and layer, colours standardised task by task; framed is the one dev would choose."""
    rows = [line for line in sheet.lines if not line.missing]
    panels = in_panels(sheet.layers, _NARROW_LAYERS if is_narrow(width) else _WIDE_LAYERS)
    tall = len(panels) * (_ROW * len(rows) + 0.62)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, tall), layout="constrained")
        grid = figure.subplots(len(panels), 1, squeeze=False).flat
        for axes, layers in zip(grid, panels, strict=True):
            _draw_cells(axes, sheet, rows, layers)
            axes.set_xlim(-0.5, len(panels[0]) - 0.5)
            axes.set_xlabel("layer (0 is the embedding)" if layers[-1] == sheet.layers[-1] else "layer")
        return as_svg(figure, name, width, _describe_heat(sheet, rows))


def _draw_cells(axes: Any, sheet: ProbingSheet, rows: Sequence[TaskLine], layers: Sequence[int]) -> None:
    for y, line in enumerate(rows):
        strengths = _strengths(sheet, line.name)
        chosen = sheet.best_layer(line.name)
        for x, layer in enumerate(layers):
            found = sheet.at(line.name, "test", layer)
            if found is None:
                continue
            corner = (x - 0.47, y - 0.45)
            axes.add_patch(Rectangle(corner, 0.94, 0.9, color=BLUE, alpha=strengths[layer], linewidth=0))
            if layer == chosen:
                axes.add_patch(Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=ORANGE, linewidth=1.8))
            weight = "bold" if layer == chosen else "normal"
            words = f"{found.value:.3f}".removeprefix("0")
            axes.text(x, y, words, ha="center", va="center", fontsize=8.2, fontweight=weight)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(layers)), labels=[str(layer) for layer in layers])
    axes.set_yticks(range(len(rows)), labels=[line.name for line in rows], fontsize=9.2)
    for label, line in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if line.kind == "task" else "bold")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _strengths(sheet: ProbingSheet, name: str) -> dict[int, float]:
    """Return how strong each layer's colour is: two deviations about the mean span the whole range."""
    known = {n: found.value for n in sheet.layers if (found := sheet.at(name, "test", n)) is not None}
    mean, spread = statistics.fmean(known.values()), statistics.pstdev(known.values())
    places = {n: 0.5 + (value - mean) / (4 * spread) if spread else 0.5 for n, value in known.items()}
    return {n: _FAINTEST + (_STRONGEST - _FAINTEST) * min(1.0, max(0.0, p)) for n, p in places.items()}


def systems_plot(table: Systems, *, name: str, width: float) -> str:
    """Draw the columns of table 2 from top to bottom: runs with their intervals among the published systems."""
    narrow = is_narrow(width)
    # Those the paper trained itself lie close together; the first and the best of them stand for the rest.
    kept = ("Baseline (NSP)", "+ SPP + NL")
    published = [row for row in table.published if row.group != "ours" or row.name in kept]
    runs = table.measured
    legend = math.ceil((len(published) + len(runs)) / (2 if narrow else 4)) * 0.21 + 0.1
    with mpl.rc_context(STYLE):
        row_height = 0.34 + 0.1 * len(runs)
        figure = Figure(
            figsize=(width, row_height * len(table.columns) + 0.65 + legend), layout="constrained"
        )
        axes = figure.add_subplot()
        for index, row in enumerate(published):
            _draw_published(axes, table, row, index)
        for index, row in enumerate(runs):
            _draw_run(axes, table, row, index, 0.16 * (index - (len(runs) - 1) / 2))
        name_rows(axes, [_tick(table, name) for name in table.columns])
        mixed = {"USS", "SSS"} & set(table.columns)
        axes.set_xlabel("test, by the group’s own measure" if mixed else "test accuracy")
        found = legend_entries(figure)
        names = [*(row.name for row in runs), *(_published_label(row) for row in published)]
        # A published system with no figure in these columns is not drawn.
        draw_legend(
            figure,
            2 if narrow else 4,
            {each: found[each] for each in names if each in found},
            fontsize=8.5 if narrow else 9.5,
            columnspacing=1.0,
            handletextpad=0.3,
        )
        return as_svg(figure, name, width, _describe_systems(table))


def _tick(table: Systems, name: str) -> str:
    """Return a column's name, starred where a run's takes in fewer tasks than the published one."""
    partly = any(row.entries[name].lacking for row in table.measured if name in row.entries)
    return f"{column_words(name)}{'*' if partly else ''}"


def _points(table: Systems, row: SystemRow) -> list[tuple[int, str]]:
    return [(y, name) for y, name in enumerate(table.columns) if name in row.entries]


def _draw_published(axes: Any, table: Systems, row: SystemRow, index: int) -> None:
    places = _points(table, row)
    axes.plot(
        [row.entries[name].value for _, name in places],
        [y for y, _ in places],
        linestyle="none",
        marker="*" if row.group == "human" else _PUBLISHED_MARKERS[index % len(_PUBLISHED_MARKERS)],
        markersize=10 if row.group == "human" else 7.5,
        markerfacecolor=PAPER,
        markeredgecolor=INK if row.group == "human" else GREY,
        markeredgewidth=1.4,
        label=_published_label(row),
        zorder=3,
    )


def _draw_run(axes: Any, table: Systems, row: SystemRow, index: int, shift: float) -> None:
    places = _points(table, row)
    figures = [row.entries[name].figure for _, name in places]
    axes.errorbar(
        [figure.value for figure in figures],
        [y + shift for y, _ in places],
        xerr=error_bars(figures),
        linestyle="none",
        color=COLOURS[index % len(COLOURS)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=7,
        elinewidth=1.6,
        capsize=3,
        label=row.name,
        zorder=5,
    )


def _published_label(row: SystemRow) -> str:
    return f"{row.name.removesuffix(' (table 5)')} (published)"


def _describe_heat(sheet: ProbingSheet, rows: Sequence[TaskLine]) -> str:
    words = [
        f"{line.name} from {min(values):.3f} to {max(values):.3f}"
        + ("" if chosen is None else f", layer {chosen} best on dev")
        for line in rows
        if (values := [f.value for n in sheet.layers if (f := sheet.at(line.name, "test", n)) is not None])
        for chosen in [sheet.best_layer(line.name)]
    ]
    return f"Test figures by task and layer. {'; '.join(words)}."


def _describe_systems(table: Systems) -> str:
    words = [
        f"{row.name}{' (published)' if row.published else ''}: "
        + ", ".join(f"{column_words(name)} {row.entries[name].value:.3f}" for _, name in _points(table, row))
        for row in [*table.measured, *table.published]
    ]
    return f"Test figures by column of table 2. {'; '.join(words)}."
