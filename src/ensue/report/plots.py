"""The pictures of a report as SVG text that takes its ink from the page, so it reads on light and on dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ensue.report.profiles import Document, Version
from ensue.report.shuffle import CHANCE, BlockRow, PublishedLine

# Drawn in colours nothing else uses, then replaced by what the page says its ink and its lines are.
_INK, _FAINT, _PAPER = "#010203", "#040506", "#070809"
_PAGE_COLOURS = {_INK: "currentColor", _FAINT: "var(--rule, #c8ccd4)", _PAPER: "var(--card, #ffffff)"}

# Middling lightness: at least 3:1 against the page's white and its near-black alike.
MEASURED = "#2b7de0"
_PUBLISHED = ["#2e9e62", "#b565b0", "#cf7a1c", "#8b8378"]
_VERSIONS = ["#2b7de0", "#d9572b", "#8f6bd1", "#2e9e62"]
_MARKERS = ["s", "^", "D", "v"]
_DASHES = [(0, (1, 1.4)), (0, (5, 2)), (0, (5, 2, 1, 2)), (0, (2.5, 2))]

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ensue",
    # Names may hold dollar signs; they are not formulas.
    "text.parse_math": False,
    "font.size": 10,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def accuracy_plot(rows: Sequence[BlockRow], published: Sequence[PublishedLine], *, width: float) -> str:
    """Accuracy by block size with 95 % intervals, the published series dashed behind it; width in inches."""
    measured = [row for row in rows if row.block_size is not None]
    with mpl.rc_context(_STYLE):
        narrow = width < 6
        figure = Figure(figsize=(width, 4.9 if narrow else 4.0), layout="constrained")
        axes = figure.add_subplot()
        axes.axhline(CHANCE, color=_INK, linewidth=0.9, linestyle=(0, (1, 3)), label="chance")
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
        axes.grid(axis="y", linewidth=0.7)
        axes.set_axisbelow(True)
        handles, labels = axes.get_legend_handles_labels()
        place = {"loc": "outside lower center", "ncols": 1} if narrow else {"loc": "outside right center"}
        figure.legend(handles[::-1], labels[::-1], frameon=False, fontsize=9.5, **place)
        return _as_svg(figure, f"accuracy-{'narrow' if narrow else 'wide'}", _describe(measured))


def _draw_measured(axes: Any, rows: Sequence[BlockRow]) -> None:
    # No interval (one document) is drawn as none, not as one of width zero.
    below = [0.0 if row.low is None else max(0.0, row.accuracy - row.low) for row in rows]
    above = [0.0 if row.high is None else max(0.0, row.high - row.accuracy) for row in rows]
    axes.errorbar(
        [row.block_size for row in rows],
        [row.accuracy for row in rows],
        yerr=[below, above],
        color=MEASURED,
        linewidth=2.4,
        elinewidth=1.6,
        capsize=4,
        marker="o",
        markersize=6.5,
        label="this run, 95 % interval",
        zorder=5,
    )


def profile_plot(document: Document, name: str, *, width: float) -> str:
    """Mean surprisal by sentence in reading order, a line per version, rings where it stops following."""
    with mpl.rc_context(_STYLE):
        narrow = width < 6
        figure = Figure(figsize=(width, 3.1 if narrow else 2.6), layout="constrained")
        axes = figure.add_subplot()
        longest = 1
        for version, colour, marker in zip(document.versions, _VERSIONS, "osD^", strict=False):
            places = [sentence.place for sentence in version.sentences]
            # A sentence without a score is a gap in the line.
            heights = [float("nan") if s.surprisal is None else s.surprisal for s in version.sentences]
            longest = max(longest, len(places))
            axes.plot(
                places, heights, color=colour, marker=marker, markersize=4, linewidth=1.7, label=version.name
            )
            _ring(axes, version, colour)
        axes.margins(y=0.12)
        step = 1 if longest <= 20 and not narrow else 2 if longest <= 24 else 5
        axes.set_xticks(range(1, longest + 1, step))
        axes.set_xlabel("sentence, in reading order")
        axes.set_ylabel("nats per token")
        axes.grid(axis="y", linewidth=0.7)
        axes.set_axisbelow(True)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper left", ncols=1 if narrow else 3, frameon=False, fontsize=9.5
        )
        about = "; ".join(_describe_version(version) for version in document.versions)
        return _as_svg(figure, f"{name}-{'narrow' if narrow else 'wide'}", f"Surprisal by sentence. {about}.")


def _ring(axes: Any, version: Version, colour: str) -> None:
    for sentence in version.sentences:
        if sentence.stops:
            axes.plot(
                [sentence.place],
                [sentence.surprisal],
                marker="o",
                markersize=12,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=1.8,
                linestyle="none",
                clip_on=False,
            )


def _describe(rows: Sequence[BlockRow]) -> str:
    points = ", ".join(f"{row.accuracy:.3f} at block size {row.block_size}" for row in rows)
    return f"Accuracy of this run: {points}. Published figures are dashed; chance is {CHANCE}."


def _describe_version(version: Version) -> str:
    stops = [sentence.place for sentence in version.sentences if sentence.stops]
    return f"{version.name}: largest rise at sentence {stops[0]}" if stops else f"{version.name}: no rise"


def _as_svg(figure: Figure, name: str, description: str) -> str:
    """The figure as an SVG element for use inside a page, where several figures share one name space."""
    buffer = StringIO()
    # Without a date the same run gives the same report.
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    for drawn, wanted in _PAGE_COLOURS.items():
        text = text.replace(drawn, wanted)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1)
