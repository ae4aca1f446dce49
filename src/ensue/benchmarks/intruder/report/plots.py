"""The pictures of an intruder run: hit rate against false alarms, and by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ensue.benchmarks.intruder.judging import POSITIONS
from ensue.benchmarks.intruder.report.table import Figures
from ensue.report.svg import (
    COLOURS,
    GREY,
    INK,
    MARKERS,
    STYLE,
    as_svg,
    draw_legend,
    error_bars,
    is_narrow,
    rule,
)

_LINES = [*((colour, "-") for colour in COLOURS), (GREY, "-"), *((colour, "--") for colour in COLOURS)]
Curve = Sequence[tuple[float, float]]
_STEP = 0.005


def curves_plot(
    curves: Mapping[str, Mapping[str, Curve]],
    points: Mapping[str, Mapping[str, tuple[float, float]]],
    rate: str,
    *,
    width: float,
) -> str:
    """Draw the hit rate against false alarms, a panel a kind of edit and a line a rule; width in inches.

    `points` are where other runs lie, such as people's, by kind and name.
    """
    with mpl.rc_context(STYLE):
        columns = 1 if is_narrow(width) else min(3, len(curves))
        rows = ceil(len(curves) / columns)
        figure = Figure(figsize=(width, 2.7 * rows + 0.7), layout="constrained")
        grid: Any = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for place, (kind, by_rule) in enumerate(curves.items()):
            _curves_panel(grid.flat[place], kind, by_rule, rate)
            for number, (name, (alarms, hit)) in enumerate(points.get(kind, {}).items()):
                marker = MARKERS[number % len(MARKERS)]
                grid.flat[place].plot(
                    [alarms],
                    [hit],
                    linestyle="none",
                    marker=marker,
                    markersize=9,
                    color=INK,
                    label=name,
                    zorder=8,
                )
        for axes in list(grid.flat)[len(curves) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel("hit rate")
        for place in range(max(0, len(curves) - columns), len(curves)):
            grid.flat[place].set_xlabel("false alarms")
            grid.flat[place].tick_params(labelbottom=True)
        draw_legend(figure, 2 if is_narrow(width) else 7)
        said = "; ".join(
            f"{kind}, {name}: at most {max(hit for _, hit in points):.2f}"
            for kind, by_rule in curves.items()
            for name, points in list(by_rule.items())[:1]
        )
        others = "; ".join(
            f"{kind}, {name}: {hit:.2f} at {alarms:.2f}"
            for kind, by_name in points.items()
            for name, (alarms, hit) in by_name.items()
        )
        about = ". ".join(filter(None, (said, others)))
        return as_svg(figure, "tradeoff", width, f"Hit rate against false alarms. {about}.")


def _curves_panel(axes: Any, kind: str, by_rule: Mapping[str, Curve], rate: str) -> None:
    axes.set_title(kind, fontsize=10, loc="left")
    # A run of another version may not say which rate it asked for.
    with suppress(ValueError):
        axes.axvline(float(rate), color=INK, linewidth=0.9, linestyle=(0, (1, 3)))
    for (name, every), (colour, style) in zip(by_rule.items(), _LINES, strict=False):
        points = thinned(every)
        # The first rule is drawn over the others, and wider.
        first = name == next(iter(by_rule))
        axes.step(
            [alarms for alarms, _ in points],
            [hit for _, hit in points],
            where="post",
            color=colour,
            linestyle=style,
            linewidth=2.2 if first else 1.3,
            zorder=5 if first else 3,
            label=name,
        )
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.02)
    rule(axes)


def thinned(points: Curve) -> Curve:
    """Leave out points of a curve that nobody could tell apart: thousands would make a page of megabytes.

    >>> thinned([(0.0, 0.0), (0.0, 0.1), (0.001, 0.2), (0.004, 0.3), (0.5, 0.4), (1.0, 0.5)])
    [(0.0, 0.0), (0.0, 0.1), (0.004, 0.3), (0.5, 0.4), (1.0, 0.5)]
    """
    steps = {ceil(alarms / _STEP): (alarms, hit) for alarms, hit in points[1:]}
    return [points[0], *steps.values()]


def positions_plot(figures: Figures, by: str, beside: Mapping[str, Figures], *, width: float) -> str:
    """Draw the hit rate at the rate of false alarms by where the edit is, a line a kind; width in inches.

    Other runs, such as people's, are dotted lines of the kind's colour.
    """
    with mpl.rc_context(STYLE):
        narrow = is_narrow(width)
        figure = Figure(figsize=(width, 3.9 if narrow else 3.2), layout="constrained")
        axes: Any = figure.add_subplot()
        said = []
        for place, kind in enumerate(figures.kinds):
            there = [
                (at, found)
                for at, position in enumerate(POSITIONS)
                if (found := figures.get("hit_rate_at", kind, by, position)) is not None
            ]
            shift = 0.04 * (place - (len(figures.kinds) - 1) / 2)
            axes.errorbar(
                [at + shift for at, _ in there],
                [found.value for _, found in there],
                yerr=error_bars([found for _, found in there]),
                color=_LINES[place % len(_LINES)][0],
                marker=MARKERS[place % len(MARKERS)],
                markersize=5,
                linewidth=1.7,
                elinewidth=1.1,
                capsize=2.5,
                label=kind,
            )
            said.append(
                f"{kind}: " + ", ".join(f"{found.value:.2f} at the {POSITIONS[at]}" for at, found in there)
            )
            for name, other in beside.items():
                far = [
                    (at, hit.value)
                    for at, position in enumerate(POSITIONS)
                    if (hit := other.get("hit_rate_at", kind, other.rules[0], position)) is not None
                ]
                if far:
                    axes.plot(
                        *zip(*far, strict=True),
                        color=_LINES[place % len(_LINES)][0],
                        linestyle=(0, (1, 1.5)),
                        marker=MARKERS[place % len(MARKERS)],
                        markerfacecolor="none",
                        label=f"{kind}, {name}",
                    )
                    told = ", ".join(f"{hit:.2f} at the {POSITIONS[at]}" for at, hit in far)
                    said.append(f"{kind}, {name}: {told}")
        axes.set_xticks(range(len(POSITIONS)), POSITIONS)
        axes.set_ylim(0.0, 1.02)
        axes.set_ylabel("hit rate at the false-alarm rate", fontsize=9.5)
        rule(axes)
        draw_legend(figure, 3 if narrow else 0)
        return as_svg(figure, "position", width, f"Hit rate by position, rule {by}. {'; '.join(said)}.")
