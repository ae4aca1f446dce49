"""The picture that the tasks on the order of sentences share: lines over numbers, chance and the like dotted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ensue.report.svg import COLOURS, INK, MARKERS, STYLE, as_svg, draw_legend, is_narrow, rule, short

Line = Mapping[int, float]


def lines_plot(
    measured: Mapping[str, Line],
    beside: Mapping[str, Line],
    *,
    x: str,
    y: str,
    name: str,
    about: str,
    width: float,
) -> str:
    """Draw measured lines, and behind them dotted ones; `about` says it in words, width in inches."""
    with mpl.rc_context(STYLE):
        narrow = is_narrow(width)
        figure = Figure(figsize=(width, 4.2 if narrow else 3.6), layout="constrained")
        axes: Any = figure.add_subplot()
        for label, line in beside.items():
            axes.plot(
                list(line), list(line.values()), color=INK, linewidth=1.0, linestyle=(0, (1, 3)), label=label
            )
        for place, (label, line) in enumerate(measured.items()):
            axes.plot(
                list(line),
                list(line.values()),
                color=COLOURS[place % len(COLOURS)],
                marker=MARKERS[place % len(MARKERS)],
                linewidth=2.0,
                markersize=5.5,
                label=short(label),
            )
        axes.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True))
        axes.set_ylim(0.0, 1.02)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        rule(axes)
        draw_legend(figure, 2 if narrow else 0, upwards=True)
        return as_svg(figure, name, width, about)
