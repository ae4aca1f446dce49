"""The picture of a training: losses above, held-out accuracy below, the best step marked in both."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ensue.report.svg import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    STYLE,
    as_svg,
    draw_legend,
    is_narrow,
    legend_entries,
    rule,
)
from ensue.train.report.page import Curve, Training, smoothed, thinned


def training_plot(training: Training, *, width: float) -> str:
    """Train loss as logged and smoothed, dev loss, and dev accuracy on a panel of its own where there is any."""
    narrow = is_narrow(width)
    accuracy, dev = training.dev("accuracy"), training.dev("loss")
    panels = 2 if accuracy.steps else 1
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, (1.2 if narrow else 0.6) + 2.6 * panels), layout="constrained")
        grid = figure.subplots(
            panels, 1, sharex=True, squeeze=False, height_ratios=[3, 2] if panels == 2 else None
        )
        losses = grid[0][0]
        if training.loss.steps:
            _draw_losses(losses, training.loss)
        _draw_dev(losses, dev, "dev loss", ORANGE)
        losses.set_ylabel("loss")
        if panels == 2:
            _draw_dev(grid[1][0], accuracy, "dev accuracy", GREEN)
            grid[1][0].set_ylabel("dev accuracy")
        for (axes,) in grid:
            if training.best is not None:
                axes.axvline(
                    training.best.step,
                    color=INK,
                    linewidth=1.1,
                    linestyle=(0, (4, 3)),
                    label=f"best, step {training.best.step:,}",
                )
            axes.margins(x=0.02, y=0.1)
            rule(axes)
        grid[-1][0].set_xlabel("step")
        grid[-1][0].xaxis.set_major_locator(MaxNLocator(nbins=5 if narrow else 9, integer=True))
        grid[-1][0].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        found = legend_entries(figure)
        draw_legend(figure, 2 if narrow else len(found), found)
        return as_svg(figure, "training", width, _describe(training))


def _draw_losses(axes: Any, curve: Curve) -> None:
    raw, smooth = thinned(curve), smoothed(curve)
    # Smoothing that changes nothing is not shown as if it did.
    if smooth != raw:
        axes.plot(raw.steps, raw.values, color=BLUE, linewidth=0.8, alpha=0.35, label="train loss, as logged")
    label = "train loss, smoothed" if smooth != raw else "train loss"
    axes.plot(smooth.steps, smooth.values, color=BLUE, linewidth=2.0, label=label)
    _mark_lone(axes, smooth, BLUE)


def _draw_dev(axes: Any, curve: Curve, label: str, colour: str) -> None:
    if curve.steps:
        shown = thinned(curve)
        size = 5 if len(shown.steps) <= 40 else 0
        axes.plot(
            shown.steps, shown.values, color=colour, linewidth=1.8, marker="o", markersize=size, label=label
        )
        _mark_lone(axes, shown, colour)


def _mark_lone(axes: Any, curve: Curve, colour: str) -> None:
    """Mark a line of one point, which would be invisible."""
    if len(curve.steps) == 1:
        axes.plot(curve.steps, curve.values, color=colour, marker="o", markersize=5)


def _describe(training: Training) -> str:
    words = []
    if training.loss.values:
        words.append(f"train loss from {training.loss.values[0]:.3f} to {training.loss.values[-1]:.3f}")
    for name in ("loss", "accuracy"):
        curve = training.dev(name)
        if curve.values:
            words.append(f"dev {name} from {curve.values[0]:.3f} to {curve.values[-1]:.3f}")
    if training.best is not None:
        words.append(f"best at step {training.best.step}")
    return f"Training over {training.steps} steps: {'; '.join(words)}."
