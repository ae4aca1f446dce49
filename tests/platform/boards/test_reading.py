"""A board as read from the tables: what is published, as it stands or stood on a day."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from sqlalchemy import Engine, event, update

from ensue.platform.boards.board import Boards
from ensue.platform.boards.reading import Reader, Shown, read_diagnostics
from ensue.platform.boards.standing import Phenomenon
from ensue.platform.database.schema import submissions
from ensue.platform.refusals import NotFound
from ensue.platform.service import Platform
from tests.platform import filling
from tests.platform.filling import COLUMNS, FIRST, metric_row

VALUES = dict.fromkeys(COLUMNS, 0.81239)


def show(reader: Reader, on: date | None = None) -> Shown:
    return reader.show("superglue", on)


def table(shown: Shown) -> list[tuple[str, int | None, float | None]]:
    return [(row.entry.system, row.rank, row.entry.score and row.entry.score.value) for row in shown.rows]


def test_only_what_is_published_is_shown_and_rounded(platform: Platform) -> None:
    with platform.database.writing() as connection:
        board = filling.add_board(connection, rounding=2)
        filling.add_entry(
            connection, board, "public", VALUES, 0.81239, team="Uppsala", link="https://example.org"
        )
        filling.add_entry(connection, board, "private", VALUES, 0.9, published_at=None)
        filling.add_entry(
            connection,
            board,
            "hidden",
            VALUES,
            0.5,
            team="Delft",
            link="https://x.org",
            code="https://y.org",
            is_anonymous=True,
        )
    shown = show(Reader(Boards(platform)))
    assert table(shown) == [("public", 1, 0.81), ("hidden", 2, 0.5)]
    public, hidden = shown.entries
    assert (public.team, public.link, public.covers) == ("Uppsala", "https://example.org", "8 tasks")
    assert {figure and figure.value for figure in public.figures} == {0.81}
    assert public.score is not None
    assert (public.score.low, public.score.high) == (0.79, 0.83)
    assert (hidden.team, hidden.link, hidden.code) == ("anonymous", "", "")


def test_a_board_read_before_is_read_again_when_something_changed(platform: Platform) -> None:
    reader = Reader(Boards(platform))
    with platform.database.writing() as connection:
        board = filling.add_board(connection)
        first = filling.add_entry(connection, board, "first", VALUES, 0.5)
    once = show(reader)
    assert show(reader) is once
    with platform.database.writing() as connection:
        filling.add_grading(
            connection, first, 0.7, [metric_row("RTE", "accuracy", 0.7)], [], FIRST + timedelta(days=3)
        )
    assert table(show(reader)) == [("first", 1, 0.7)]
    with platform.database.writing() as connection:
        connection.execute(update(submissions).values(is_anonymous=True))
    assert [entry.team for entry in show(reader).entries] == ["anonymous"]
    with platform.database.writing() as connection:
        connection.execute(update(submissions).values(published_at=None))
    assert table(show(reader)) == []


def test_a_day_shows_what_was_published_and_how_it_was_graded_then(platform: Platform) -> None:
    day = timedelta(days=1)
    with platform.database.writing() as connection:
        board = filling.add_board(connection)
        first = filling.add_entry(connection, board, "first", VALUES, 0.5, at=FIRST)
        filling.add_entry(connection, board, "second", VALUES, 0.6, at=FIRST + 2 * day)
        filling.add_grading(connection, first, 0.9, [], [], FIRST + 4 * day)
    reader = Reader(Boards(platform))
    before, later = FIRST.date() - day, FIRST.date()
    assert table(show(reader, before)) == []
    assert table(show(reader, later)) == [("first", 1, 0.5)]
    assert table(show(reader, later + 2 * day)) == [("second", 1, 0.6), ("first", 2, 0.5)]
    assert table(show(reader)) == [("first", 1, 0.9), ("second", 2, 0.6)]


def test_diagnostics_are_those_of_the_grading_that_stands(platform: Platform) -> None:
    logic = {"category": "Logic"}
    with platform.database.writing() as connection:
        board = filling.add_board(connection)
        id = filling.add_entry(
            connection,
            board,
            "first",
            VALUES,
            0.5,
            diagnostics=[metric_row("AX-b", "mcc", 0.11111, 90, logic)],
        )
        filling.add_grading(
            connection, id, 0.5, [], [metric_row("AX-b", "mcc", 0.2, 90, logic)], FIRST + timedelta(days=2)
        )
    place = Phenomenon("AX-b", "mcc", "Logic")
    with platform.database.reading() as connection:
        now = read_diagnostics(connection, [id], 3)[id][place]
        then = read_diagnostics(connection, [id], 3, FIRST.date())[id][place]
        assert read_diagnostics(connection, [], 3) == {}
    assert now is not None
    assert then is not None
    assert (now.value, then.value) == (0.2, 0.111)


def test_more_gradings_than_one_statement_takes(platform: Platform) -> None:
    with platform.database.writing() as connection:
        board = filling.add_board(connection)
        filling.add_many(connection, board, 520)
    shown = show(Reader(Boards(platform)))
    assert len(shown.rows) == 520
    assert all(any(entry.figures) for entry in shown.entries)


def test_there_is_no_board_of_another_name(platform: Platform) -> None:
    with pytest.raises(NotFound, match="no such board"):
        Reader(Boards(platform)).show("nothing")


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """Every statement that a database is asked while the test runs."""
    found: list[str] = []
    listen = lambda *call: found.append(call[2])  # noqa: E731
    event.listen(Engine, "before_cursor_execute", listen)
    yield found
    event.remove(Engine, "before_cursor_execute", listen)


def test_nothing_is_asked_of_the_database_as_long_as_nothing_is_written(
    platform: Platform, asked: list[str]
) -> None:
    with platform.database.writing() as connection:
        board = filling.add_board(connection)
        filling.add_many(connection, board, 3)
    reader = Reader(Boards(platform))
    asked.clear()
    first = [show(reader), show(reader, FIRST.date()), *reader.listed()]
    assert asked
    asked.clear()
    again = [show(reader), show(reader, FIRST.date()), *reader.listed()]
    assert [id(one) for one in again] == [id(one) for one in first]
    assert asked == []
    # Something else is written: the board is looked at again, and is the same.
    platform.accounts.add("ada@example.org", "participant")
    asked.clear()
    assert show(reader) is first[0]
    assert asked
    Boards(platform).change("superglue", {"title": "Another"})
    assert show(reader).board.title == reader.listed()[0].board.title == "Another"
