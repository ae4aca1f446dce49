"""What all pictures of a report share: colours that read on light and on dark, and SVG text fit for a page."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from markupsafe import Markup

from ensue.report.figure import Figure as MeasuredFigure

if TYPE_CHECKING:
    # Drawing needs matplotlib, which takes half a second to import; reports without pictures do without it.
    from matplotlib.figure import Figure

Column = TypeVar("Column")

# Drawn in colours nothing else uses, then replaced by what the page says its ink and its lines are.
INK, FAINT, PAPER = "#010203", "#040506", "#070809"
_PAGE_COLOURS = {INK: "currentColor", FAINT: "var(--rule, #c8ccd4)", PAPER: "var(--card, #ffffff)"}

# Middling lightness: at least 3:1 against the page's white and its near-black alike.
BLUE, ORANGE, VIOLET, GREEN, PINK, OCHRE, GREY = (
    "#2b7de0",
    "#d9572b",
    "#8f6bd1",
    "#2e9e62",
    "#b565b0",
    "#cf7a1c",
    "#8b8378",
)
COLOURS = (BLUE, ORANGE, VIOLET, GREEN, PINK, OCHRE)
# One more than the colours, so that no two of 42 lines look alike.
MARKERS = ("o", "s", "D", "^", "v", "P", "X")

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ensue",
    # Names may hold dollar signs; they are not formulas.
    "text.parse_math": False,
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
}

_WIDE, _NARROW = 8.6, 4.4
_MOST_LABEL = 44


class Picture(NamedTuple):
    """One plot drawn twice, so that its words are readable on a desk and on a telephone."""

    wide: Markup
    narrow: Markup


def drawn_twice(draw: Callable[[float], str]) -> Picture:
    """Draw a picture at both widths; `draw` is given the width in inches."""
    return Picture(Markup(draw(_WIDE)), Markup(draw(_NARROW)))


def is_narrow(width: float) -> bool:
    """Say whether a picture of this width is the one for telephones."""
    return width < 6


def rule(axes: Any) -> None:
    """Draw faint lines across, behind what is drawn."""
    axes.grid(axis="y", linewidth=0.7)
    axes.set_axisbelow(True)


def error_bars(figures: Sequence[MeasuredFigure]) -> list[list[float]] | None:
    """Return how far intervals reach below and above their values; None where no value has an interval."""
    below = [0.0 if each.low is None else max(0.0, each.value - each.low) for each in figures]
    above = [0.0 if each.high is None else max(0.0, each.high - each.value) for each in figures]
    # No interval (one cluster) is drawn as none, not as one of width zero.
    return [below, above] if any(below) or any(above) else None


def legend_entries(figure: Figure) -> dict[str, Any]:
    """Return what is drawn by its label, each label once however many axes have it."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    return found


def draw_legend(
    figure: Figure,
    columns: int = 0,
    entries: Mapping[str, Any] | None = None,
    *,
    upwards: bool = False,
    fontsize: float = 9.5,
    **more: Any,
) -> None:
    """Name what is drawn, or these entries, below the picture in so many columns, or on its right.

    With `upwards` what was drawn last, over the rest, is named first.
    """
    found = list((legend_entries(figure) if entries is None else entries).items())[:: -1 if upwards else 1]
    place = {"loc": "outside lower center", "ncols": columns} if columns else {"loc": "outside right center"}
    handles, labels = [handle for _, handle in found], [short(label) for label, _ in found]
    figure.legend(handles, labels, frameon=False, fontsize=fontsize, **place, **more)


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Name rows from top to bottom, with faint lines both ways behind what is drawn."""
    axes.set_yticks(range(len(names)), labels=names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="both", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)


def in_panels(columns: Sequence[Column], most: int) -> list[Sequence[Column]]:
    """Return columns in as few panels as will do, none much shorter than the others.

    >>> in_panels("abcdefg", 3)
    ['abc', 'def', 'g']
    """
    size = math.ceil(len(columns) / math.ceil(len(columns) / most))
    return [columns[begin : begin + size] for begin in range(0, len(columns), size)]


def short(label: str) -> str:
    """Shorten a label so that it leaves room for the picture; tables have all of it."""
    return label if len(label) <= _MOST_LABEL else label[: _MOST_LABEL - 1] + "…"


def as_svg(figure: Figure, name: str, width: float, description: str) -> str:
    """Return the figure as an SVG element for use inside a page, where several figures share one name space."""
    buffer = StringIO()
    # Without a date the same run gives the same report.
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    name = f"{name}-{'narrow' if is_narrow(width) else 'wide'}"
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    for drawn, wanted in _PAGE_COLOURS.items():
        text = text.replace(drawn, wanted)
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1)
