"""The picture of a transfer run: every model over all tests, from what it was trained for to what it was not."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ensue.benchmarks.transfer.report.table import Transferred, anchors, rows_by_group
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
    short,
)

CHANCE = 0.5


def transfer_plot(run: Transferred, *, width: float) -> str:
    """Draw accuracies with 95 % intervals, trained models as whole lines and others dashed, groups of tests apart;
    stars are what is published of supervised models. Width in inches."""
    groups = rows_by_group(run)
    with mpl.rc_context(STYLE):
        narrow = is_narrow(width)
        figure = Figure(figsize=(width, 5.4 if narrow else 4.4), layout="constrained")
        axes: Any = figure.add_subplot()
        axes.axhline(CHANCE, color=INK, linewidth=0.9, linestyle=(0, (1, 3)), label="chance")
        at = 0.0
        ticks, labels = [], []
        starred: list[tuple[float, float]] = []
        for name, tests in groups:
            places = [at + step for step in range(len(tests))]
            for number, model in enumerate(run.models):
                _line(axes, run, model, number, tests, places, first=at == 0.0)
            starred += [
                (place, value)
                for place, test in zip(places, tests, strict=True)
                for value in anchors(run, test)
            ]
            ticks += places
            labels += [test.detail.removeprefix("k = ") for test in tests]
            axes.annotate(
                name.replace("\n", " ") if narrow else name,
                (sum(places) / len(places), 1.01),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="bottom",
                fontsize=8 if narrow else 9,
                rotation=90 if narrow else 0,
            )
            at = places[-1] + 1.6
        if starred:
            axes.scatter(
                *zip(*starred, strict=True),
                color=GREY,
                marker="*",
                s=70,
                zorder=6,
                label="supervised (published)",
            )
        axes.set_xticks(ticks, labels, fontsize=8.5, rotation=90 if len(ticks) > 14 or narrow else 0)
        axes.set_ylabel("accuracy over pairs of texts")
        rule(axes)
        # Handles long enough to show a dashed line as one.
        draw_legend(figure, 1 if narrow else 3, upwards=True, fontsize=9, handlelength=3.2)
        return as_svg(figure, "transfer", width, _about(run))


def _line(
    axes: Any, run: Transferred, model: str, number: int, tests: Any, places: list[float], *, first: bool
) -> None:
    found = [(place, run.get(test, model)) for place, test in zip(places, tests, strict=True)]
    known = [(place, one) for place, one in found if one is not None]
    if not known:
        return
    # A little apart, so that bars do not hide one another.
    shift = 0.09 * (number - (len(run.models) - 1) / 2)
    trained = run.trained[model]
    axes.errorbar(
        [place + shift for place, _ in known],
        [one.value for _, one in known],
        yerr=error_bars([one for _, one in known]),
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle="-" if trained else (0, (4, 2)),
        linewidth=2.0,
        elinewidth=1.2,
        capsize=2.5,
        markersize=5.0,
        markerfacecolor=None if trained else "none",
        label=short(f"{model} (trained on shuffled text)" if trained else model) if first else None,
    )


def _about(run: Transferred) -> str:
    said = []
    for model in run.models:
        values = [(test.label, run.get(test, model)) for test in run.tests]
        words = ", ".join(f"{one.value:.2f} on {label}" for label, one in values if one is not None)
        said.append(f"{model}: {words}")
    return ". ".join(said) + f". Chance is {CHANCE}."
