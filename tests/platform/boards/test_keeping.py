"""What an organiser is told of a board."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import update

from ensue.platform.boards import keeping
from ensue.platform.database.schema import new_id, submissions
from ensue.platform.service import Platform
from tests.platform import filling
from tests.platform.filling import COLUMNS, FIRST

VALUES = dict.fromkeys(COLUMNS, 0.5)


def test_what_was_handed_in_is_counted_and_listed_the_newest_first(platform: Platform) -> None:
    ada = platform.accounts.add("ada@example.org", "participant")
    with platform.database.writing() as connection:
        board, other = (filling.add_board(connection, name) for name in ("one", "two"))
        filling.add_entry(connection, other, "elsewhere", VALUES, 0.5)
        filling.add_entry(connection, board, "Human", VALUES, 0.9, kind="human")
        made = [
            filling.add_entry(
                connection, board, name, VALUES, 0.5, at=FIRST + timedelta(days=day), user_id=ada.id, **facts
            )
            for day, (name, facts) in enumerate(
                {"a": {}, "b": {"published_at": None}, "c": {"state": "failed", "reason": "No."}}.items()
            )
        ]
        job = platform.queue.add(connection, "grade", subject=made[0])
        connection.execute(update(submissions).where(submissions.c.id == made[0]).values(job_id=job))
        connection.execute(update(submissions).where(submissions.c.id == made[1]).values(user_id=None))
    with platform.database.reading() as connection:
        assert keeping.counts(connection, board) == keeping.Counts(3, 2, 1, 1, 3)
        assert keeping.counts(connection, other) == keeping.Counts(1, 1, 0, 0, 1)
        assert keeping.counts(connection, new_id()) == keeping.Counts(0, 0, 0, 0, 0)
        listed = [
            (one.system, one.email, one.state, one.reason) for one in keeping.handed_in(connection, board)
        ]
    assert listed == [
        ("c", "ada@example.org", "failed", "No."),
        ("b", "", "graded", None),
        ("a", "ada@example.org", "graded", None),
    ]


def test_what_was_done_to_a_board_is_told_in_words(platform: Platform) -> None:
    ada = platform.accounts.add("ada@example.org", "organiser")
    record = platform.accounts.record
    with platform.database.writing() as connection:
        board = filling.add_board(connection)
        record(connection, "board made", user=ada.id, subject=board, name="x")
        record(connection, "labels replaced", user=ada.id, subject=board, version=2, regraded=3)
        record(connection, "board changed", subject=board, is_open=False, quota_day=4, about="y" * 99)
        record(connection, "signed out everywhere", subject=board)
    with platform.database.reading() as connection:
        acts = keeping.acts(connection, board)
    assert [(act.words, act.by) for act in acts] == [
        (f"changed: open no, quota a day 4, about {'y' * 59}…", ""),
        ("labels given, version 2; 3 graded again", "ada@example.org"),
        ("made", "ada@example.org"),
    ]
