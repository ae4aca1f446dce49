"""The picture of a Shuffle Test: accuracy by block size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ensue.benchmarks.shuffle.report.table import BlockRow
from ensue.report.svg import (
    BLUE,
    GREEN,
    GREY,
    INK,
    OCHRE,
    PINK,
    STYLE,
    as_svg,
    draw_legend,
    error_bars,
    is_narrow,
    rule,
)

CHANCE = 0.5
_PUBLISHED: list[dict[str, Any]] = [
    {"color": GREEN, "marker": "s", "linestyle": (0, (1, 1.4))},
    {"color": PINK, "marker": "^", "linestyle": (0, (5, 2))},
    {"color": OCHRE, "marker": "D", "linestyle": (0, (5, 2, 1, 2))},
    {"color": GREY, "marker": "v", "linestyle": (0, (2.5, 2))},
]

# Runs that are set beside this one.
_BESIDE: list[dict[str, Any]] = [
    {"color": INK, "marker": "*"},
    {"color": GREEN, "marker": "P"},
    {"color": PINK, "marker": "X"},
]


def accuracy_plot(
    rows: Sequence[BlockRow],
    published: Mapping[str, Mapping[int, float]],
    beside: Mapping[str, Mapping[int, float]] | None = None,
    *,
    width: float,
) -> str:
    """Draw accuracy by block size with 95 % intervals, the published series dashed behind it and other runs, such as
    people's, as plain lines; width in inches."""
    measured = [row for row in rows if row.block_size is not None]
    with mpl.rc_context(STYLE):
        narrow = is_narrow(width)
        figure = Figure(figsize=(width, 4.9 if narrow else 4.0), layout="constrained")
        axes: Any = figure.add_subplot()
        axes.axhline(CHANCE, color=INK, linewidth=0.9, linestyle=(0, (1, 3)), label="chance")
        for (name, points), style in zip(published.items(), _PUBLISHED, strict=False):
            axes.plot(
                list(points),
                list(points.values()),
                **style,
                linewidth=1.5,
                markersize=4.5,
                label=f"{name} (published)",
            )
        for (name, points), style in zip((beside or {}).items(), cycle(_BESIDE)):
            axes.plot(list(points), list(points.values()), **style, linewidth=1.9, markersize=5.5, label=name)
        figures = [row.accuracy for row in measured]
        axes.errorbar(
            [row.block_size for row in measured],
            [each.value for each in figures],
            yerr=error_bars(figures),
            color=BLUE,
            linewidth=2.4,
            elinewidth=1.6,
            capsize=4,
            marker="o",
            markersize=6.5,
            label="this run, 95 % interval",
            zorder=5,
        )
        # Block sizes are whole numbers; there may be twenty of them.
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        lowest = min([CHANCE, *(each.value if each.low is None else each.low for each in figures)])
        axes.set_ylim(max(0.0, lowest - 0.05), 1.015)
        axes.set_xlabel("block size (sentences kept together)")
        axes.set_ylabel("accuracy")
        rule(axes)
        draw_legend(figure, 1 if narrow else 0, upwards=True)
        said = ", ".join(f"{row.accuracy.value:.3f} at block size {row.block_size}" for row in measured)
        about = f"Accuracy of this run: {said}. Published figures are dashed; chance is {CHANCE}."
        return as_svg(figure, "accuracy", width, about)
