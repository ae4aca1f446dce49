"""The best score over time, or the best of one task, against human performance, as SVG; CSS gives it colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from markupsafe import Markup, escape

from ensue.platform.boards.standing import Entry, Series, Step, over_time
from ensue.report.figure import fraction

_MOST_DOTS = 400


class Drawing(NamedTuple):
    """The chart drawn twice, for a desk and for a telephone, with the figures it shows."""

    wide: Markup
    narrow: Markup
    steps: list[Step]
    human: float | None


class _Frame(NamedTuple):
    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


_WIDE = _Frame(880, 260, 52, 868, 18, 228)
_NARROW = _Frame(360, 230, 44, 352, 18, 200)


def draw(
    entries: Sequence[Entry], until: datetime, digits: int, place: int | None = None, of: str = "score"
) -> Drawing | None:
    """Draw the best score so far at every time, or the best figure of a column (`place`, called `of`).

    None where fewer than two submissions have a figure.
    """
    series = over_time(entries, place)
    if len(series.dots) < 2:
        return None
    pictures = [_picture(frame, series, until, digits, of) for frame in (_WIDE, _NARROW)]
    return Drawing(pictures[0], pictures[1], series.best, series.human)


def _picture(frame: _Frame, series: Series, until: datetime, digits: int, of: str) -> Markup:
    dots, steps, human = series.dots[:_MOST_DOTS], series.best, series.human
    end = max(until, steps[-1].at)
    begin = min(steps[0].at, end - timedelta(days=1))
    # Some room, so that the first step is not on the axis.
    begin -= (end - begin) * 0.03
    values = [step.score for step in (*dots, *steps)]
    low, high, ticks = scale(min(values), max([*values, *([] if human is None else [human])]))

    def x(at: datetime) -> float:
        return round(frame.left + (frame.right - frame.left) * ((at - begin) / (end - begin)), 1)

    def y(value: float) -> float:
        return round(frame.bottom - (frame.bottom - frame.top) * ((value - low) / (high - low)), 1)

    parts = [
        f'<line class="rule" x1="{frame.left}" x2="{frame.right}" y1="{y(tick)}" y2="{y(tick)}"/>'
        f'<text class="tick" x="{frame.left - 6}" y="{y(tick) + 4}" text-anchor="end">{fraction(tick, 2)}</text>'
        for tick in ticks
    ]
    for day in days(begin, end, 6 if frame is _WIDE else 3):
        at = datetime(day.year, day.month, day.day, tzinfo=begin.tzinfo)
        parts.append(
            f'<text class="tick" x="{x(at)}" y="{frame.bottom + 18}" text-anchor="middle">{_day(day)}</text>'
        )
    parts += [f'<circle class="other" cx="{x(one.at)}" cy="{y(one.score)}" r="2.5"/>' for one in dots]
    path = f"M{x(steps[0].at)} {y(steps[0].score)}"
    path += "".join(f"H{x(step.at)}V{y(step.score)}" for step in steps[1:]) + f"H{x(end)}"
    parts.append(f'<path class="best" d="{path}"/>')
    parts += [f'<circle class="record" cx="{x(step.at)}" cy="{y(step.score)}" r="4"/>' for step in steps]
    if human is not None:
        parts.append(
            f'<line class="human" x1="{frame.left}" x2="{frame.right}" y1="{y(human)}" y2="{y(human)}"/>'
            f'<text class="human-words" x="{frame.left + 6}" y="{y(human) - 6}">'
            f"human {fraction(human, digits)}</text>"
        )
    said = f"Best {of} over time: {fraction(steps[0].score, digits)} on {steps[0].at:%Y-%m-%d}"
    if len(steps) > 1:
        said += f", {fraction(steps[-1].score, digits)} since {steps[-1].at:%Y-%m-%d}"
    said += f"; human {fraction(human, digits)}" if human is not None else ""
    return Markup(
        f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {frame.width:g} {frame.height:g}"'
        f' class="{"wide" if frame is _WIDE else "narrow"}">{"".join(parts)}</svg>'
    )


def scale(least: float, most: float) -> tuple[float, float, list[float]]:
    """Return where an axis begins and ends and its marks, at round numbers, so that all values lie within.

    >>> scale(0.69, 0.898)
    (0.65, 0.95, [0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
    >>> scale(0.5, 0.5)
    (0.4, 0.6, [0.4, 0.5, 0.6])
    >>> scale(0.7, 1.0)
    (0.6, 1.0, [0.6, 0.7, 0.8, 0.9, 1.0])
    """
    span = most - least
    step = next((one for one in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if span and span / one <= 6), 0.1)
    first = math.floor(least / step + 1e-9)
    last = math.ceil(most / step - 1e-9)
    # A value on the frame is hard to see.
    first -= first * step >= least - step / 10
    last += last * step <= most + step / 10
    # Nothing is better than all right.
    last = min(last, round(1 / step)) if most <= 1 and first < round(1 / step) else last
    ticks = [round(number * step, 4) for number in range(first, last + 1)]
    return ticks[0], ticks[-1], ticks


def days(begin: datetime, end: datetime, most: int) -> list[date]:
    """Return at most so many days, evenly spread between two moments."""
    first = (begin + timedelta(days=1)).date()
    count = (end.date() - first).days + 1
    if count <= 0:
        return []
    every = max(1, math.ceil(count / most))
    # From the middle of the first stretch, so that no label is cut off at an edge.
    return [first + timedelta(days=number) for number in range(every // 2, count, every)]


def _day(day: date) -> str:
    return f"{day.day} {day:%b %Y}"
