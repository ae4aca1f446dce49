"""The picture of a surprisal profile: sentence by sentence."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ensue.report.profiles import ProfiledDocument, ProfileVersion
from ensue.report.svg import BLUE, GREEN, ORANGE, STYLE, VIOLET, as_svg, is_narrow, rule

_VERSIONS = [BLUE, ORANGE, VIOLET, GREEN]


def profile_plot(document: ProfiledDocument, name: str, *, width: float) -> str:
    """Draw mean surprisal by sentence in reading order, a line per version, rings at the most surprising."""
    with mpl.rc_context(STYLE):
        narrow = is_narrow(width)
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
        rule(axes)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper left", ncols=1 if narrow else 3, frameon=False, fontsize=9.5
        )
        about = "; ".join(_describe_version(version) for version in document.versions)
        return as_svg(figure, name, width, f"Surprisal by sentence. {about}.")


def _ring(axes: Any, version: ProfileVersion, colour: str) -> None:
    for sentence in version.sentences:
        if sentence.highest:
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


def _describe_version(version: ProfileVersion) -> str:
    highest = [sentence.place for sentence in version.sentences if sentence.highest]
    return f"{version.name}: largest rise at sentence {highest[0]}" if highest else f"{version.name}: no rise"
