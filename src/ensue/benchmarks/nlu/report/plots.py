"""The pictures of GLUE and SuperGLUE runs: the diagnostic by phenomenon, and how far templates lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from ensue.benchmarks.nlu.report.scores import Diagnosis, Phenomenon, RunScores, phenomena
from ensue.report.svg import (
    BLUE,
    COLOURS,
    FAINT,
    INK,
    MARKERS,
    ORANGE,
    STYLE,
    as_svg,
    draw_legend,
    in_panels,
    is_narrow,
    name_rows,
)

_ROW = 0.235
# More columns than these are drawn in several panels, so that numbers in cells stay readable.
_WIDE_COLUMNS, _NARROW_COLUMNS = 9, 4
# Through this much colour the ink of the page reads on light and on dark alike.
_STRONGEST = 0.62
# Longer names of columns are cut.
_LONGEST = 30
_SHORT = {"Predicate-Argument Structure": "Predicate-Argument"}


def diagnostic_map(columns: Sequence[Diagnosis], name: str, width: float) -> str:
    """Draw correlations by phenomenon, blue above zero and orange below, the stronger the further from it.

    A column is an answer to the diagnostic set; its `way` is the name that the column has.
    """
    narrow = is_narrow(width)
    rows = [place for place in phenomena() if any(place in column.figures for column in columns)]
    sizes = [_sizes(columns, place) for place in rows]
    panels = in_panels(columns, _NARROW_COLUMNS if narrow else _WIDE_COLUMNS)
    widest = max(len(panel) for panel in panels)
    # Room in inches for the slanted names of the columns.
    heading = 0.3 + 0.055 * min(_LONGEST, max(len(column.way) for column in columns))
    with mpl.rc_context(STYLE):
        height = len(panels) * (_ROW * len(rows) + 0.25 + heading)
        figure = Drawing(figsize=(width, height), layout="constrained")
        grid = figure.subplots(len(panels), 1, squeeze=False).flat
        for axes, panel in zip(grid, panels, strict=True):
            _draw_cells(axes, panel, rows, sizes)
            # One column on a wide page would be a bar across it.
            axes.set_xlim(-0.5, max(widest, 2 if narrow else 5) + 0.1)
        return as_svg(figure, name, width, _describe_map(columns, rows))


def _sizes(columns: Sequence[Diagnosis], place: Phenomenon) -> str:
    """Return how many examples a row is over; runs of a part of the data have fewer."""
    counts = [column.figures[place].n for column in columns if place in column.figures]
    low, high = min(counts), max(counts)
    return f"{high:,}" if low == high else f"{low:,}–{high:,}"


def _draw_cells(
    axes: Any, columns: Sequence[Diagnosis], rows: Sequence[Phenomenon], sizes: Sequence[str]
) -> None:
    for y, place in enumerate(rows):
        weight = "normal" if place.tag else "bold"
        for x, column in enumerate(columns):
            found = column.figures.get(place)
            if found is None:
                continue
            colour = BLUE if found.value >= 0 else ORANGE
            strength = _STRONGEST * min(1.0, abs(found.value))
            corner = (x - 0.47, y - 0.45)
            axes.add_patch(Rectangle(corner, 0.94, 0.9, color=colour, alpha=strength, linewidth=0))
            # A zero has no colour; its frame tells it from a row without examples.
            axes.add_patch(Rectangle(corner, 0.94, 0.9, fill=False, edgecolor=FAINT, linewidth=0.7))
            axes.text(
                x, y, _hundredths(found.value), ha="center", va="center", fontsize=8.6, fontweight=weight
            )
        axes.text(len(columns) - 0.4, y, sizes[y], ha="left", va="center", fontsize=7.6, alpha=0.75)
    axes.text(len(columns) - 0.4, -0.75, "n", ha="left", va="bottom", fontsize=8.2, alpha=0.75)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), labels=[_row_label(place) for place in rows], fontsize=9.2)
    for label, place in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_fontweight("normal" if place.tag else "bold")
    axes.xaxis.tick_top()
    names = [
        column.way if len(column.way) <= _LONGEST else column.way[: _LONGEST - 1] + "…" for column in columns
    ]
    slant = {"rotation": 35, "ha": "left", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(columns)), labels=names, fontsize=9.2, **slant)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _row_label(place: Phenomenon) -> str:
    return place.tag or _SHORT.get(place.category, place.category) or "all examples"


def _hundredths(value: float) -> str:
    shown = f"{value:.2f}"
    return "0" if float(shown) == 0 else shown.replace("-", "−").replace("0.", ".", 1)


def spread_plot(runs: Sequence[RunScores], beside: Sequence[RunScores], split: str, width: float) -> str:
    """Draw every answer's score by task, a stroke at the mean; the lines of runs, all of several answers.

    Of those `beside`, such as people's, every line has one answer, drawn as a filled point.
    """
    narrow = is_narrow(width)
    tasks = list(dict.fromkeys(line.name for run in runs for line in run.lines))
    row_height = 0.26 + 0.1 * len(runs)
    with mpl.rc_context(STYLE):
        figure = Drawing(figsize=(width, row_height * len(tasks) + 0.95), layout="constrained")
        axes = figure.add_subplot()
        for index, run in enumerate(runs):
            _draw_run(axes, run, tasks, 0.24 * (index - (len(runs) - 1) / 2), index)
        for index, run in enumerate(beside):
            axes.plot(
                [line.value for line in run.lines],
                [tasks.index(line.name) for line in run.lines],
                linestyle="none",
                marker=MARKERS[index % len(MARKERS)],
                markersize=8,
                color=INK,
                label=run.name,
                zorder=6,
            )
        name_rows(axes, tasks)
        axes.set_xlabel(f"score, {split}")
        draw_legend(figure, 1 if narrow else 3, fontsize=9)
        return as_svg(figure, f"spread-{split}", width, _describe_spread(runs, beside))


def _draw_run(axes: Any, run: RunScores, tasks: Sequence[str], shift: float, index: int) -> None:
    places = [tasks.index(line.name) + shift for line in run.lines]
    points = zip(run.lines, places, strict=True)
    answers = [(answer.main.value, place) for line, place in points for answer in line.answers]
    axes.plot(
        *zip(*answers, strict=True),
        linestyle="none",
        marker=MARKERS[index % len(MARKERS)],
        markersize=6.5,
        markerfacecolor="none",
        markeredgecolor=COLOURS[index % len(COLOURS)],
        markeredgewidth=1.6,
        label=run.name,
        zorder=4,
    )
    axes.plot(
        [line.value for line in run.lines],
        places,
        linestyle="none",
        marker="|",
        markersize=15,
        markeredgewidth=2.0,
        color=INK,
        label="mean over answers",
        zorder=5,
    )


def _describe_map(columns: Sequence[Diagnosis], rows: Sequence[Phenomenon]) -> str:
    coarse = [place for place in rows if not place.tag]
    words = [
        f"{column.way}: "
        + ", ".join(
            f"{_row_label(place)} {column.figures[place].value:.3f}"
            for place in coarse
            if place in column.figures
        )
        for column in columns
    ]
    return f"Correlation by phenomenon. {'; '.join(words)}."


def _describe_spread(runs: Sequence[RunScores], beside: Sequence[RunScores]) -> str:
    words = [
        f"{run.name}: "
        + ", ".join(
            f"{line.name} from {min(values):.3f} to {max(values):.3f}"
            for line in run.lines
            if (values := [answer.main.value for answer in line.answers])
        )
        for run in runs
    ]
    words += [
        f"{run.name}: " + ", ".join(f"{line.name} {line.value:.3f}" for line in run.lines) for run in beside
    ]
    return f"Scores of several answers by task. {'; '.join(words)}."
