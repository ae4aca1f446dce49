"""What both databases promise: whole transactions, readers that see one state and cannot write, times in UTC."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import DBAPIError, StatementError

from ensue.errors import EnsueError
from ensue.platform.database.opening import Database, DatabaseUnavailable, parse_url
from ensue.platform.database.schema import events, invitations, sessions, users


def event(database: Database, kind: str, at: datetime | None = None, **details: object) -> None:
    with database.writing() as connection:
        row = {"at": at or datetime(2026, 1, 1, tzinfo=UTC), "kind": kind, "details": details}
        connection.execute(insert(events).values(**row))


def count(database: Database) -> int:
    with database.reading() as connection:
        return int(connection.execute(select(func.count()).select_from(events)).scalar_one())


def test_a_block_that_raises_changes_nothing(database: Database) -> None:
    def change_and_fail() -> None:
        with database.writing() as connection:
            connection.execute(insert(events).values(at=datetime.now(UTC), kind="lost", details={}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        change_and_fail()
    assert count(database) == 0


def test_a_reader_sees_one_state_and_cannot_write(database: Database) -> None:
    event(database, "before")
    with database.reading() as connection:
        first = connection.execute(select(func.count()).select_from(events)).scalar()
        event(database, "meanwhile")
        assert connection.execute(select(func.count()).select_from(events)).scalar() == first == 1
    assert count(database) == 2
    with pytest.raises(DBAPIError), database.reading() as connection:
        connection.execute(insert(events).values(at=datetime.now(UTC), kind="sneaked in", details={}))
    assert count(database) == 2
    event(database, "after")  # and the connection is of use again


def test_times_come_back_in_utc_in_order_and_bare_ones_are_refused(database: Database) -> None:
    east = timezone(timedelta(hours=9))
    event(database, "second", datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=east))
    event(database, "first", datetime(2026, 1, 1, 2, 59, 59, tzinfo=UTC))
    with database.reading() as connection:
        rows = connection.execute(select(events.c.kind, events.c.at).order_by(events.c.at)).all()
        late = connection.execute(
            select(events.c.kind).where(events.c.at > datetime(2026, 1, 1, 3, tzinfo=UTC))
        )
        assert late.scalars().all() == ["second"]
    assert [row.kind for row in rows] == ["first", "second"]
    assert rows[1].at == datetime(2026, 1, 1, 3, 0, 0, 5, tzinfo=UTC)
    assert rows[1].at.tzinfo == UTC
    with pytest.raises(StatementError, match="without a zone"):
        event(database, "bare", datetime(2026, 1, 1))


def test_numbers_are_never_given_twice(database: Database) -> None:
    event(database, "one")
    with database.writing() as connection:
        connection.execute(events.delete())
    event(database, "two")
    with database.reading() as connection:
        assert connection.execute(select(events.c.number)).scalar() == 2


def test_references_and_rules_are_kept(database: Database) -> None:
    now = datetime.now(UTC)
    nobody = {"cookie_hash": "x", "user_id": "nobody", "created_at": now, "seen_at": now, "expires_at": now}
    emperor = {"id": "u", "email": "a@b", "role": "emperor", "created_at": now}
    running = {"kind": "grade", "arguments": {}, "state": "running", "created_at": now}
    for table, row in ((sessions, nobody), (users, emperor)):
        with pytest.raises(DBAPIError), database.writing() as connection:
            connection.execute(insert(table).values(**row))
    from ensue.platform.database.schema import jobs

    with pytest.raises(DBAPIError), database.writing() as connection:
        connection.execute(insert(jobs).values(**running))  # without a lease


def test_an_error_does_not_quote_values(database: Database) -> None:
    now = datetime.now(UTC)
    row = {"id": "i", "hash": "s3cret", "role": "emperor", "created_at": now, "expires_at": now}
    with pytest.raises(DBAPIError) as caught, database.writing() as connection:
        connection.execute(insert(invitations).values(**row))
    if database.is_sqlite:  # PostgreSQL's own words have the row; they are not logged (see logs.where)
        assert "s3cret" not in str(caught.value)


def test_many_threads_write_and_read_and_nothing_is_lost(database: Database) -> None:
    def write(number: int) -> None:
        for step in range(10):
            event(database, f"{number}/{step}")
            count(database)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count(database) == 80


def test_a_counter_read_and_written_back_by_many_is_exact(database: Database) -> None:
    """What a quota rests on: who locks the row it decides about is alone with it."""
    with database.writing() as connection:
        row = {"id": "u", "email": "a@b", "name": "0", "role": "participant", "created_at": datetime.now(UTC)}
        connection.execute(insert(users).values(**row))

    def add() -> None:
        for _ in range(10):
            with database.writing() as connection:
                query = select(users.c.name).where(users.c.id == "u").with_for_update()
                value = int(connection.execute(query).scalar_one())
                connection.execute(users.update().where(users.c.id == "u").values(name=str(value + 1)))

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.reading() as connection:
        assert connection.execute(select(users.c.name)).scalar() == "80"


def test_a_database_is_held_by_one_process_at_a_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ensue.platform.database.opening._HOLD_WAIT", 0.2)
    database.hold()
    with pytest.raises(EnsueError, match="is open already"):
        Database(database.url).hold()
    # What holds it is no connection that anybody else is given.
    with database.writing() as connection:
        connection.execute(text("SELECT 1"))
    database.close()
    again = Database(database.url)
    again.hold()
    again.close()


def test_sqlite_is_set_up_for_one_writer(database: Database) -> None:
    if not database.is_sqlite:
        with database.reading() as connection:
            assert connection.execute(text("SHOW transaction_isolation")).scalar() == "repeatable read"
        return
    with database.writing() as connection:
        found = [
            connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "synchronous")
        ]
        assert found == ["wal", 2]
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
        assert connection.execute(text("PRAGMA mmap_size")).scalar() in (0, None)
    with database.reading() as connection:
        assert connection.execute(text("PRAGMA query_only")).scalar() == 1
        assert connection.execute(text("PRAGMA wal_autocheckpoint")).scalar() == 0


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://host/name", "nonsense", ""])
def test_addresses_of_no_database_here_are_refused(url: str) -> None:
    with pytest.raises(EnsueError, match="--database"):
        parse_url(url)


def test_a_database_that_is_away_is_a_sentence_without_the_password() -> None:
    database = Database("postgresql://ada:s3cret@127.0.0.1:1/ensue")
    with pytest.raises(DatabaseUnavailable) as caught:
        database.migrate()
    assert "s3cret" not in str(caught.value)
    assert str(caught.value).startswith(
        "The database postgresql+psycopg://ada:***@127.0.0.1:1/ensue cannot be opened"
    )
