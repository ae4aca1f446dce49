"""Ranks, order and search of a board, checked against counting by hand on drawn entries."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensue.platform.boards.standing import (
    Column,
    Entry,
    Phenomenon,
    arrange,
    covers,
    cut,
    diagnostics,
    over_time,
    phenomena,
    rounded,
    search,
    shade,
    sortable,
    standing,
)
from ensue.report.figure import Figure
from tests.platform.filling import metric_row

DAY = datetime(2026, 11, 16, tzinfo=UTC)
COLUMNS = [Column("RTE", "accuracy"), Column("CB", "f1")]

figures = st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.501, 0.75, 1.0]).map(Figure)


@st.composite
def some_entries(draw: st.DrawFn) -> list[Entry]:
    count = draw(st.integers(0, 12))
    return [
        Entry(
            id=f"id{number}",
            kind=draw(st.sampled_from(["submission", "submission", "human", "published", "measured"])),
            system=draw(st.sampled_from(["alpha", "Beta", "gamma 7B"])),
            team=draw(st.sampled_from(["", "Uppsala", "delft"])),
            published_at=DAY + timedelta(days=draw(st.integers(0, 5))),
            score=draw(figures),
            figures=(draw(figures), draw(figures)),
        )
        for number in range(count)
    ]


@given(some_entries(), st.randoms(use_true_random=False))
def test_ranks_count_the_better_submissions_whatever_order_entries_come_in(
    entries: list[Entry], order: random.Random
) -> None:
    rows = standing(entries)
    scores = [entry.score.value for entry in entries if entry.score and entry.kind == "submission"]
    for row in rows:
        if row.entry.kind != "submission" or row.entry.score is None:
            assert (row.rank, row.is_tied) == (None, False)
        else:
            mine = row.entry.score.value
            assert row.rank == 1 + sum(score > mine for score in scores)
            assert row.is_tied == (scores.count(mine) > 1)
    mixed = entries.copy()
    order.shuffle(mixed)
    assert standing(mixed) == rows


@given(some_entries())
def test_scores_fall_and_what_has_none_is_last(entries: list[Entry]) -> None:
    scores = [row.entry.score and row.entry.score.value for row in standing(entries)]
    known = [score for score in scores if score is not None]
    assert scores == sorted(known, reverse=True) + [None] * (len(scores) - len(known))
    assert sorted(row.entry.id for row in standing(entries)) == sorted(entry.id for entry in entries)


@given(some_entries(), st.sampled_from(sortable(COLUMNS)), st.booleans())
def test_a_sorted_table_has_missing_values_last_and_keeps_the_order_of_equals(
    entries: list[Entry], by: str, descending: bool
) -> None:
    rows = standing(entries)

    def value(entry: Entry) -> object:
        match by:
            case "score":
                return entry.score and entry.score.value
            case "RTE.accuracy" | "CB.f1":
                figure = entry.figures[by == "CB.f1"]
                return figure and figure.value
            case "published":
                return entry.published_at
            case _:
                return getattr(entry, by).lower() or None

    found = arrange(rows, COLUMNS, by, descending=descending)
    values = [value(row.entry) for row in found]
    known = [one for one in values if one is not None]
    assert values[len(known) :] == [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=descending)  # type: ignore[type-var]
    places = {row.entry.id: place for place, row in enumerate(rows)}
    for first, second in pairwise(found):
        if value(first.entry) == value(second.entry):
            assert places[first.entry.id] < places[second.entry.id]


@given(some_entries())
def test_the_best_over_time_rises_to_the_best_submission(entries: list[Entry]) -> None:
    series = over_time(entries)
    steps = series.best
    handed_in = [entry for entry in entries if entry.kind == "submission" and entry.score]
    assert {step.entry.id for step in series.dots} == {entry.id for entry in handed_in}
    assert [step.score for step in steps] == sorted({step.score for step in steps})
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert bool(steps) == bool(handed_in)
    for entry in handed_in:
        assert entry.score is not None
        assert max(step.score for step in steps if step.at <= entry.published_at) >= entry.score.value
    if steps:
        assert steps[-1].score == max(entry.score.value for entry in handed_in if entry.score)


def entry(system: str, score: float | None, kind: str = "submission", **facts: object) -> Entry:
    figure = None if score is None else Figure(score)
    return Entry(system, kind, system, DAY, figure, **facts)  # type: ignore[arg-type]


def test_ties_share_the_better_rank_and_baselines_take_none() -> None:
    rows = standing(
        [
            entry("d", 0.7),
            entry("b", 0.8),
            entry("people", 0.9, "human"),
            entry("x", None),
            entry("c", 0.8),
            entry("a", 0.85),
        ]
    )
    found = [(row.entry.system, row.rank, row.is_tied) for row in rows]
    assert found == [
        ("people", None, False),
        ("a", 1, False),
        ("b", 2, True),
        ("c", 2, True),
        ("d", 4, False),
        ("x", None, False),
    ]


def test_a_search_wants_every_word_somewhere() -> None:
    rows = standing(
        [
            entry("BERT large", 0.7, team="Uppsala"),
            entry("T5", 0.6, description="a LARGE model"),
            entry("people", 0.9, "human"),
        ]
    )

    def found(words: str) -> list[str]:
        return [row.entry.system for row in search(rows, words)]

    assert found("large") == ["BERT large", "T5"]
    assert found(" Large uppsala ") == ["BERT large"]
    assert found("human") == ["people"]
    assert found("largest") == []
    assert found("") == ["people", "BERT large", "T5"]


def test_human_performance_is_the_best_of_the_human_rows() -> None:
    people = [entry("p", 0.8, "human"), entry("q", 0.9, "human"), entry("r", None, "human")]
    assert over_time([entry("a", 0.95), *people]).human == 0.9
    assert over_time([entry("a", 0.95)]).human is None


def test_a_column_over_time_is_that_columns_own() -> None:
    people = entry("p", 0.9, "human", figures=(None, Figure(0.6)))
    later = {"published_at": DAY + timedelta(days=1)}
    one = replace(entry("a", 0.5), figures=(Figure(0.9), None))
    two = replace(entry("b", 0.4), figures=(Figure(0.8), Figure(0.3)), **later)
    three = replace(entry("c", None), figures=(Figure(0.95), Figure(0.2)), **later)
    first, second = (over_time([people, one, two, three], place) for place in (0, 1))
    assert ([step.entry.id for step in first.best], first.human) == (["a", "c"], None)
    assert ([step.entry.id for step in second.best], second.human) == (["b"], 0.6)
    assert len(second.dots) == 2


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (0.71549, 3, 0.715),
        (0.5, 1, 0.5),
        (-0.0001, 3, 0.0),
        (float("nan"), 3, None),
        (float("inf"), 3, None),
        (None, 3, None),
        (True, 3, None),
    ],
)
def test_numbers_are_cut_to_the_boards_digits(
    value: float | None, digits: int, expected: float | None
) -> None:
    found = cut(value, digits)
    assert found == expected
    assert str(found) != "-0.0"


def test_a_figure_keeps_no_more_digits_than_the_board_says() -> None:
    row = metric_row("RTE", "accuracy", 0.123456, 277)
    assert rounded(row, 2) == Figure(0.12, 0.1, 0.14, 277, 277)
    assert rounded({**row, "ci95": None}, 3) == Figure(0.123, None, None, 277, 277)
    assert rounded({**row, "value": float("nan")}, 3) is None


def test_a_column_takes_the_row_of_its_settings() -> None:
    rows = [
        metric_row("all", "accuracy", 0.9, settings={"block_size": 1}),
        metric_row("all", "accuracy", 0.8, settings={"block_size": 5, "x": 1}),
    ]
    found = Column("all", "accuracy", settings={"block_size": 5}).find(rows, 3)
    assert found is not None
    assert found.value == 0.8
    assert Column("all", "f1").find(rows, 3) is None


def test_tasks_in_part_are_named_once() -> None:
    columns = [
        Column("CB", "f1", covers="half"),
        Column("CB", "accuracy", covers="half"),
        Column("RTE", "accuracy"),
    ]
    assert covers(columns) == [("CB", "half")]


def test_diagnostics_of_few_examples_are_not_told() -> None:
    rows = [
        metric_row("AX-b", "mcc", 0.512345, 10, {"category": "Logic", "split": "test"}),
        metric_row("AX-b", "mcc", 1.0, 9, {"category": "Logic", "tag": "Negation"}),
    ]
    found = diagnostics(rows, 3)
    assert found[Phenomenon("AX-b", "mcc", "Logic")] == Figure(0.512, 0.492, 0.532, 10, 10)
    assert found[Phenomenon("AX-b", "mcc", "Logic", "Negation")] is None


def test_phenomena_of_several_gradings_stand_by_set_and_category() -> None:
    all_, logic, negation = (
        Phenomenon("AX", "r3", *more) for more in ((), ("Logic",), ("Logic", "Negation"))
    )
    knowledge = Phenomenon("AX", "r3", "Knowledge")
    other = Phenomenon("AX", "accuracy")
    assert phenomena([{all_: 1, logic: 1, knowledge: 1, other: 1}, {negation: 1}]) == [
        all_,
        logic,
        negation,
        knowledge,
        other,
    ]


@given(st.floats(-1, 1))
def test_better_cells_are_never_paler(value: float) -> None:
    assert 0 <= shade(value) <= 9
    assert shade(value) <= shade(min(1.0, value + 0.1))
