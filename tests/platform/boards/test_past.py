"""A board on a past day: what was withdrawn, deleted or failed since is neither hidden in silence nor made up."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ensue.platform.boards.board import Boards
from ensue.platform.boards.reading import Reader
from ensue.platform.boards.submissions import Submissions
from ensue.platform.clock import SetClock
from ensue.platform.database.schema import gradings, submissions
from ensue.platform.service import Platform
from tests.platform import filling
from tests.platform.boards.handing import Participant, participant
from tests.platform.filling import COLUMNS

VALUES = dict.fromkeys(COLUMNS, 0.5)
NOON = datetime.fromisoformat("2026-11-16T12:00:00+00:00")


@pytest.fixture
def ada(platform: Platform) -> Participant:
    return participant(platform)


@pytest.fixture
def board(platform: Platform) -> str:
    with platform.database.writing() as connection:
        return filling.add_board(connection, "small")


def add(platform: Platform, board: str, who: Participant, system: str, score: float) -> str:
    """Add something that is graded and private."""
    with platform.database.writing() as connection:
        facts = {"user_id": who.user.id, "published_at": None}
        return filling.add_entry(connection, board, system, VALUES, score, at=NOON, **facts)


def day(number: int) -> date:
    return NOON.date() + timedelta(days=number)


def stood(platform: Platform, on: date | None = None) -> tuple[list[tuple[str, int | None]], int]:
    """Who stands or stood there with which rank, and how many were withdrawn since."""
    shown = Reader(Boards(platform)).show("small", on)
    return [(row.entry.system, row.rank) for row in shown.rows], shown.withdrawn


def test_what_is_withdrawn_is_counted_and_not_named_on_the_days_it_stood(
    platform: Platform, ada: Participant, board: str, clock: SetClock
) -> None:
    act, first = Submissions(platform), add(platform, board, ada, "first", 0.9)
    second = add(platform, board, ada, "second", 0.5)
    act.publish(ada.user, first, anonymous=False)
    act.publish(ada.user, second, anonymous=False)
    clock.time = NOON + timedelta(days=2)
    act.publish(ada.user, first, anonymous=True)  # the same publication
    clock.time = NOON + timedelta(days=4)
    act.withdraw(ada.user, first)
    alone = [("second", 1)]
    assert stood(platform) == (alone, 0)
    assert stood(platform, day(-1)) == ([], 0)
    assert [stood(platform, day(number)) for number in (0, 2, 3)] == [(alone, 1)] * 3
    assert stood(platform, day(4)) == (alone, 0)
    clock.time = NOON + timedelta(days=6)
    act.publish(ada.user, first, anonymous=False)
    both = [("first", 1), ("second", 2)]
    assert [stood(platform, day(number))[0] for number in (0, 4, 5, 6)] == [both, alone, alone, both]
    times = {one.system: one.published_at for one in Reader(Boards(platform)).show("small", day(0)).entries}
    assert times == {"first": NOON, "second": NOON}


def test_a_deleted_account_leaves_what_it_published_on_every_day(
    platform: Platform, ada: Participant, board: str, clock: SetClock
) -> None:
    act = Submissions(platform)
    kept, withdrawn, _ = (add(platform, board, ada, name, 0.5) for name in ("kept", "withdrawn", "private"))
    act.publish(ada.user, kept, anonymous=False)
    act.publish(ada.user, withdrawn, anonymous=False)
    clock.time = NOON + timedelta(days=2)
    act.withdraw(ada.user, withdrawn)
    clock.time = NOON + timedelta(days=3)
    platform.accounts.delete(ada.user.id)
    with platform.database.reading() as connection:
        left = connection.execute(submissions.select()).all()
        assert [row.system for row in left] == ["kept"]
        assert len(connection.execute(gradings.select()).all()) == 1
    alone = [("kept", 1)]
    assert stood(platform) == (alone, 0)
    assert [stood(platform, day(number)) for number in (0, 1, 2, 3)] == [
        (alone, 1),
        (alone, 1),
        (alone, 0),
        (alone, 0),
    ]


def test_another_boards_withdrawals_are_not_counted(
    platform: Platform, ada: Participant, board: str, clock: SetClock
) -> None:
    with platform.database.writing() as connection:
        other = filling.add_board(connection, "other")
    act = Submissions(platform)
    for where in (other, board):
        one = add(platform, where, ada, "one", 0.5)
        act.publish(ada.user, one, anonymous=False)
        if where == other:
            clock.time = NOON + timedelta(days=1)
            act.withdraw(ada.user, one)
    assert stood(platform, day(0)) == ([], 0)


def test_what_new_labels_cannot_grade_stood_until_it_failed(
    platform: Platform, ada: Participant, board: str, clock: SetClock
) -> None:
    act = Submissions(platform)
    one = add(platform, board, ada, "one", 0.5)
    act.publish(ada.user, one, anonymous=False)
    clock.time = NOON + timedelta(days=3)
    assert act.regrade("small")["regraded"] == 1
    assert stood(platform) == ([("one", 1)], 0)
    job = platform.queue.claim()
    assert job is not None
    assert platform.queue.fail(job, "failed", "It does not fit.")
    assert stood(platform) == ([], 0)
    assert stood(platform, day(2)) == ([("one", 1)], 0)
    assert stood(platform, day(3)) == ([], 0)
    for on, failed in ((None, 1), (day(3), 1)):
        regrading = Reader(Boards(platform)).show("small", on).regrading
        assert regrading is not None
        assert (regrading.failed, regrading.has_new_labels) == (failed, False)
    assert Reader(Boards(platform)).show("small", day(2)).regrading is None


def test_pages_and_files_of_a_past_day_say_what_was_withdrawn(
    platform: Platform, client: TestClient, ada: Participant, board: str, clock: SetClock, tmp_path: Path
) -> None:
    act, one = Submissions(platform), add(platform, board, ada, "Nameless", 0.5)
    act.publish(ada.user, one, anonymous=False)
    clock.time = NOON + timedelta(days=1)
    act.withdraw(ada.user, one)
    for address in ("/boards/small", "/boards/small/diagnostics"):
        page = client.get(f"{address}?date={day(0)}", headers={"Accept": "text/html"}).text
        assert "1 system that stood here on that day was withdrawn since" in page
        assert "Nameless" not in page
        assert "withdrawn since" not in client.get(address, headers={"Accept": "text/html"}).text
    assert client.get(f"/boards/small.json?date={day(0)}").json()["withdrawn"] == 1
    missing = client.get(f"/submissions/{one}", headers={"Accept": "text/html"})
    assert missing.status_code == 404
    assert "private, or withdrawn" in missing.text
