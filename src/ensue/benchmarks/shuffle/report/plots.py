"""The picture of a Shuffle Test: accuracy by block size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ensue.benchmarks.shuffle.report.rows import CHANCE, BlockRow, PublishedLine
from ensue.report.svg import BLUE, GREEN, GREY, INK, OCHRE, PINK, STYLE, as_svg, is_narrow, rule

_PUBLISHED = [GREEN, PINK, OCHRE, GREY]
_MARKERS = ["s", "^", "D", "v"]
_DASHES = [(0, (1, 1.4)), (0, (5, 2)), (0, (5, 2, 1, 2)), (0, (2.5, 2))]


def accuracy_plot(rows: Sequence[BlockRow], published: Sequence[PublishedLine], *, width: float) -> str:
    """Accuracy by block size with 95 % intervals, the published series dashed behind it; width in inches."""
    measured = [row for row in rows if row.block_size is not None]
    with mpl.rc_context(STYLE):
        narrow = is_narrow(width)
        figure = Figure(figsize=(width, 4.9 if narrow else 4.0), layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(CHANCE, color=INK, linewidth=0.9, linestyle=(0, (1, 3)), label="chance")
        for line, colour, marker, dash in zip(published, _PUBLISHED, _MARKERS, _DASHES, strict=False):
            axes.plot(
                list(line.points),
                list(line.points.values()),
                color=colour,
                linestyle=dash,
                linewidth=1.5,
                marker=marker,
                markersize=4.5,
                label=f"{line.name} (published)",
            )
        _draw_measured(axes, measured)
        # Block sizes are whole numbers; there may be twenty of them.
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        lowest = min([CHANCE, *(row.accuracy if row.low is None else row.low for row in measured)])
        axes.set_ylim(max(0.0, lowest - 0.05), 1.015)
        axes.set_xlabel("block size (sentences kept together)")
        axes.set_ylabel("accuracy")
        rule(axes)
        handles, labels = axes.get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": 1} if narrow else {"loc": "outside right center"}
        figure.legend(handles[::-1], labels[::-1], frameon=False, fontsize=9.5, **place)
        return as_svg(figure, "accuracy", width, _describe(measured))


def _draw_measured(axes: Any, rows: Sequence[BlockRow]) -> None:
    # No interval (one document) is drawn as none, not as one of width zero.
    below = [0.0 if row.low is None else max(0.0, row.accuracy - row.low) for row in rows]
    above = [0.0 if row.high is None else max(0.0, row.high - row.accuracy) for row in rows]
    axes.errorbar(
        [row.block_size for row in rows],
        [row.accuracy for row in rows],
        yerr=[below, above],
        color=BLUE,
        linewidth=2.4,
        elinewidth=1.6,
        capsize=4,
        marker="o",
        markersize=6.5,
        label="this run, 95 % interval",
        zorder=5,
    )


def _describe(rows: Sequence[BlockRow]) -> str:
    points = ", ".join(f"{row.accuracy:.3f} at block size {row.block_size}" for row in rows)
    return f"Accuracy of this run: {points}. Published figures are dashed; chance is {CHANCE}."
