"""The chart of the best score over time: what is drawn where, read back from its SVG."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.platform.boards.standing import Entry
from ensue.platform.web.chart import days, draw, scale
from ensue.report.figure import Figure

FIRST = datetime(2026, 1, 5, 9, tzinfo=UTC)


def entry(day: float, score: float | None, kind: str = "submission") -> Entry:
    figure = None if score is None else Figure(score)
    return Entry(f"{kind}{day}", kind, "<b>&", FIRST + timedelta(days=day), figure)


def circles(svg: str, name: str) -> list[tuple[float, float]]:
    found = ElementTree.fromstring(svg).findall(f"circle[@class='{name}']")
    return [(float(one.attrib["cx"]), float(one.attrib["cy"])) for one in found]


def test_the_line_rises_with_each_record_and_human_performance_stands_above() -> None:
    entries = [entry(0, 0.6), entry(10, 0.5), entry(20, 0.8), entry(0, 0.9, "human"), entry(5, None)]
    drawing = draw(entries, FIRST + timedelta(days=30), 3)
    assert drawing is not None
    assert [step.score for step in drawing.steps] == [0.6, 0.8]
    for svg in (drawing.wide, drawing.narrow):
        (first_x, first_y), (second_x, second_y) = circles(svg, "record")
        assert first_x < second_x
        assert first_y > second_y
        assert len(circles(svg, "other")) == 3
        human = ElementTree.fromstring(svg).find("line[@class='human']")
        assert human is not None
        assert float(human.attrib["y1"]) < second_y
        assert "0.800 since 2026-01-25; human 0.900" in svg
        # The record of day 20 of 30 stands two thirds of the way from the first to the end of the line.
        end = float(re.findall(r"H([\d.]+)", svg)[-1])
        assert (second_x - first_x) / (end - first_x) == pytest.approx(2 / 3, abs=0.01)


def test_a_tasks_own_figures_are_drawn_and_named() -> None:
    entries = [
        replace(entry(day, 0.5), figures=(Figure(value), None))
        for day, value in ((0, 0.3), (10, 0.4), (20, 0.35))
    ]
    entries.append(replace(entry(0, 0.9, "human"), figures=(Figure(0.7), None)))
    drawing = draw(entries, FIRST + timedelta(days=30), 3, 0, "RTE acc.")
    assert drawing is not None
    assert ([step.score for step in drawing.steps], drawing.human) == ([0.3, 0.4], 0.7)
    assert "Best RTE acc. over time: 0.300 on 2026-01-05, 0.400 since 2026-01-15; human 0.700" in drawing.wide
    assert draw(entries, FIRST, 3, 1, "CB F1") is None


def test_one_submission_is_no_line() -> None:
    assert draw([entry(0, 0.6), entry(0, 0.9, "human"), entry(1, None)], FIRST, 3) is None
    assert draw([], FIRST, 3) is None


@given(st.floats(-1, 1), st.floats(0, 1.5))
def test_an_axis_holds_every_value_between_few_round_marks(least: float, span: float) -> None:
    low, high, ticks = scale(least, least + span)
    assert low < least + 1e-9
    assert high > least + span - 1e-9
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= 10
    assert (low, high) == (ticks[0], ticks[-1])


@given(st.integers(0, 4000), st.integers(1, 8))
def test_days_are_few_and_within(length: int, most: int) -> None:
    end = FIRST + timedelta(days=length)
    found = days(FIRST, end, most)
    assert len(found) <= most
    assert all(FIRST.date() < day <= end.date() for day in found)
    assert found == sorted(set(found))
