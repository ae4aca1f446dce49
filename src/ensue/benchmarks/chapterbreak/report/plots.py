"""The pictures of ChapterBreak runs: accuracy by length, and accuracy against perplexity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from ensue.benchmarks.chapterbreak.report.rows import Measured, Panel, PlotLine, length_words
from ensue.report.svg import (
    COLOURS,
    GREY,
    INK,
    MARKERS,
    PAPER,
    STYLE,
    as_svg,
    draw_legend,
    error_bars,
    is_narrow,
    legend_entries,
    rule,
    short,
)

# Hollow, so that they cannot be taken for measured ones.
_PUBLISHED_MARKERS = ("<", ">", "s", "d", "^", "*", "p", "v")
_DASHES = ("solid", (0, (5, 2)), (0, (1, 1.4)))


class PublishedPoint(NamedTuple):
    """A published figure as a mark in a plot; `x` is a length in tokens or a perplexity."""

    name: str
    x: float
    accuracy: float


class RunPoint(NamedTuple):
    """A run's accuracy at its word perplexity."""

    name: str
    perplexity: float
    row: Measured


def lengths_plot(
    panels: Sequence[Panel],
    published: Sequence[PublishedPoint],
    levels: Mapping[str, float],
    *,
    name: str,
    length: Callable[[Measured], int],
    axis: str,
    chance: float,
    height: float,
    width: float,
) -> str:
    """Accuracy by a length on a logarithmic axis, panels side by side, or stacked when narrow; sizes in inches.

    `levels` are accuracies without a length, such as people's, in the panel of chapter breaks.
    """
    narrow = is_narrow(width)
    drawn = [line for panel in panels for line in panel.lines]
    names = list(dict.fromkeys(line.name for line in drawn))
    points = list(published) if any(panel.with_published for panel in panels) else []
    measured = [length(row) for line in drawn for row in line.rows]
    lengths = [tokens for tokens in (*measured, *(int(p.x) for p in points)) if tokens > 0] or [1]
    place = _Positions(min(lengths), max(lengths), 0 in measured)
    columns = 1 if narrow else min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    legend = _legend_below([*names, *levels, *map(_published_label, points)], narrow, columns)
    tall = (min(height, 3.0) if narrow or columns > 1 else height) * rows + legend.height
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, tall), layout="constrained")
        grid = figure.subplots(rows, columns, sharey=True, squeeze=False).flat
        for axes, panel in zip(grid, panels, strict=False):
            _draw_panel(axes, panel, points if panel.with_published else [], names, length, place, chance)
            for index, (person, level) in enumerate(levels.items() if panel.with_published else ()):
                dashes = _DASHES[(index + 1) % len(_DASHES)]
                axes.axhline(level, color=INK, linewidth=1.6, linestyle=dashes, label=person, zorder=4)
            place.mark(axes, crowded=narrow or columns > 2)
            if len(panels) > 1:
                axes.set_title(short(panel.title), fontsize=10, loc="left")
            axes.set_xlabel(axis)
        for place_in_grid, axes in enumerate(figure.axes):
            axes.set_visible(place_in_grid < len(panels))
            if place_in_grid % columns == 0:
                axes.set_ylabel("accuracy")
        marks = [*points, *(PublishedPoint(person, 0, level) for person, level in levels.items())]
        figure.axes[0].set_ylim(*_heights([row for line in drawn for row in line.rows], marks, chance))
        _draw_legend(figure, legend)
        told = "".join(f" {person}: {level:.3f}." for person, level in levels.items())
        return as_svg(figure, name, width, _describe(panels, points, length, chance) + told)


def perplexity_plot(
    points: Sequence[RunPoint], published: Sequence[PublishedPoint], *, chance: float, width: float
) -> str:
    """Accuracy against the word perplexity of the gold suffix: better models would lie up and to the left."""
    narrow = is_narrow(width)
    legend = _legend_below([*(p.name for p in points), *map(_published_label, published)], narrow, 1)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, (2.8 if narrow else 3.3) + legend.height), layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(chance, color=INK, linewidth=0.9, linestyle=(0, (1, 3)), label="chance")
        for index, point in enumerate(published):
            _draw_published(axes, point, index, point.x)
        for index, run in enumerate(points):
            _draw_line(axes, PlotLine(run.name, [run.row]), index, [run.perplexity])
        spread = [point.perplexity for point in points] + [point.x for point in published]
        if max(spread) > 8 * min(spread):
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
            axes.xaxis.set_minor_formatter(lambda value, _: "")
        axes.margins(x=0.12)
        axes.set_ylim(*_heights([point.row for point in points], published, chance))
        axes.set_xlabel("word perplexity of the gold suffix")
        axes.set_ylabel("accuracy")
        rule(axes)
        _draw_legend(figure, legend)
        about = "; ".join(f"{p.name} {p.row.accuracy.value:.3f} at {p.perplexity:.1f}" for p in points)
        others = "; ".join(f"{p.name} {p.accuracy:.2f} at {p.x:.1f}" for p in published)
        return as_svg(
            figure, "perplexity", width, f"Accuracy against word perplexity: {'; '.join([about, others])}."
        )


class _Positions(NamedTuple):
    """Where lengths lie on an axis of equal doublings; no tokens at all lie one doubling below the least."""

    least: int
    most: int
    has_zero: bool

    def __call__(self, tokens: float) -> float:
        return math.log2(tokens) if tokens > 0 else math.log2(self.least) - 1

    def mark(self, axes: Any, *, crowded: bool) -> None:
        powers = list(range(math.floor(math.log2(self.least)), math.ceil(math.log2(self.most)) + 1))
        if self.most < 2 ** powers[-1] and len(powers) > 1:
            powers.pop()
        step = math.ceil(len(powers) / (5 if crowded else 9))
        shown = powers[::-1][::step]
        ticks = {float(power): length_words(2**power) for power in shown}
        if self.has_zero:
            ticks[self(0)] = "none"
        axes.set_xticks(list(ticks), labels=list(ticks.values()))
        axes.set_xlim(self(0 if self.has_zero else self.least) - 0.35, self(self.most) + 0.35)


def _draw_panel(
    axes: Any,
    panel: Panel,
    published: Sequence[PublishedPoint],
    names: Sequence[str],
    length: Callable[[Measured], int],
    place: _Positions,
    chance: float,
) -> None:
    axes.axhline(chance, color=INK, linewidth=0.9, linestyle=(0, (1, 3)), label="chance")
    for index, point in enumerate(published):
        _draw_published(axes, point, index, place(point.x))
    for line in panel.lines:
        index = names.index(line.name)
        # A little apart, so that intervals at one length do not hide one another.
        shift = 0.07 * (index - (len(names) - 1) / 2)
        _draw_line(axes, line, index, [place(length(row)) + shift for row in line.rows])
    rule(axes)


def _draw_line(axes: Any, line: PlotLine, index: int, places: Sequence[float]) -> None:
    figures = [row.accuracy for row in line.rows]
    axes.errorbar(
        places,
        [figure.value for figure in figures],
        yerr=error_bars(figures),
        color=COLOURS[index % len(COLOURS)],
        linestyle=_DASHES[index // len(COLOURS) % len(_DASHES)],
        marker=MARKERS[index % len(MARKERS)],
        markersize=5.5,
        linewidth=2.0,
        elinewidth=1.2,
        capsize=3,
        label=line.name,
        zorder=5,
    )


def _draw_published(axes: Any, point: PublishedPoint, index: int, x: float) -> None:
    axes.plot(
        [x],
        [point.accuracy],
        linestyle="none",
        marker=_PUBLISHED_MARKERS[index % len(_PUBLISHED_MARKERS)],
        markersize=8,
        markerfacecolor=PAPER,
        markeredgecolor=GREY,
        markeredgewidth=1.6,
        label=_published_label(point),
        zorder=4,
    )


def _heights(
    measured: Sequence[Measured], published: Sequence[PublishedPoint], chance: float
) -> tuple[float, float]:
    figures = [row.accuracy for row in measured]
    lows = [figure.value if figure.low is None else figure.low for figure in figures]
    highs = [figure.value if figure.high is None else figure.high for figure in figures]
    marks = [point.accuracy for point in published]
    return max(0.0, min([chance, *lows, *marks]) - 0.04), min(1.02, max([chance, *highs, *marks]) + 0.05)


class _Legend(NamedTuple):
    """How many columns a legend has below the picture and the height it takes there; none: it stands beside."""

    columns: int
    height: float


def _legend_below(labels: Sequence[str], narrow: bool, panels: int) -> _Legend:
    long = max(len(short(label)) for label in labels) > (24 if narrow else 34)
    if not (narrow or panels > 1 or long):
        return _Legend(0, 0.0)
    columns = (1 if long else 2) if narrow else (2 if long else 4)
    return _Legend(columns, 0.2 * math.ceil((len(labels) + 1) / columns))


def _draw_legend(figure: Figure, legend: _Legend) -> None:
    found = legend_entries(figure)
    # Measured lines are drawn last and named first.
    names = sorted(found, key=lambda name: (name == "chance", name.endswith("(published)")))
    draw_legend(figure, legend.columns, {name: found[name] for name in names})


def _published_label(point: PublishedPoint) -> str:
    return f"{point.name} (published)"


def _describe(
    panels: Sequence[Panel],
    published: Sequence[PublishedPoint],
    length: Callable[[Measured], int],
    chance: float,
) -> str:
    words = [
        f"{panel.title + ', ' if panel.title else ''}{line.name}: "
        + ", ".join(f"{row.accuracy.value:.3f} at {length_words(length(row))}" for row in line.rows)
        for panel in panels
        for line in panel.lines
    ]
    if published:
        words.append(
            "published: "
            + ", ".join(f"{p.name} {p.accuracy:.2f} at {length_words(int(p.x))}" for p in published)
        )
    return f"Accuracy by length in tokens. {'; '.join(words)}. Chance is {chance:.3f}."
