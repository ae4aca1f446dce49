"""The tables as the migrations make them, from nothing and from every earlier schema, are those of schema.py."""

from __future__ import annotations

import re
import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from ensue.errors import EnsueError
from ensue.platform.accounts import Accounts
from ensue.platform.clock import SetClock
from ensue.platform.database import migrating
from ensue.platform.database.opening import REVISION, Database
from ensue.platform.database.schema import metadata, sessions
from tests.platform.conftest import NOON, migrated


def differences(database: Database) -> list[object]:
    with database.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": False}
        )
        return list(compare_metadata(context, metadata))


def test_a_new_database_has_the_tables_of_the_schema(empty_url: str) -> None:
    with migrated(empty_url) as database:
        assert database.revision() == REVISION
        assert differences(database) == []
        database.migrate()  # again: nothing to do


def test_migrations_from_nothing_make_the_same_tables(empty_url: str) -> None:
    database = Database(empty_url)
    try:
        migrating.upgrade(database, None)
        assert database.revision() == REVISION
        assert differences(database) == []
    finally:
        database.close()


def test_servers_that_start_at_once_on_a_new_database_make_its_tables_once(empty_url: str) -> None:
    database = Database(empty_url)
    failed: list[Exception] = []

    def start() -> None:
        try:
            database.migrate()
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert differences(database) == []
    finally:
        database.close()


def test_the_newest_migration_is_the_revision_that_the_code_expects() -> None:
    assert migrating.revisions()[0] == REVISION
    assert migrating.revisions()[-1] == "0001"


# What the rules of the tables ask for, where any text would not do.
ALLOWED = {"role": "organiser", "jobs.state": "queued", "jobs.lease": None, "submissions.state": "graded"}
ALLOWED |= {"submissions.kind": "submission"}


def value_for(column: sa.Column[Any], number: int, rows: dict[str, list[dict[str, Any]]]) -> Any:
    """A value that fits a column: that of a row referred to, what the rules allow, or anything of its type."""
    for reference in column.foreign_keys:
        return rows[reference.column.table.name][number][reference.column.name]
    for name in (f"{column.table.name}.{column.name}", column.name):
        if name in ALLOWED:
            return ALLOWED[name]
    for check in column.table.constraints:
        words = str(getattr(check, "sqltext", ""))
        if found := re.search(rf"\b{column.name}\b.*?(?:IN \(|ANY \(\(?ARRAY\[)'(\w+)'", words):
            return found[1]
    match column.type:
        case sa.JSON():
            return {"n": number, "words": "é"}
        case sa.Boolean():
            return True
        case sa.Float():
            return 0.5 + number
        case sa.Integer():
            return 1 + number
        case sa.DateTime():
            time = NOON + timedelta(seconds=number)
            return time if getattr(column.type, "timezone", False) else time.replace(tzinfo=None)
        case _:
            return f"{column.name} {number}"[: getattr(column.type, "length", None)]


def fill(connection: sa.Connection) -> dict[str, list[dict[str, Any]]]:
    """Add two rows to every table there is, and return what was added."""
    reflected = sa.MetaData()
    reflected.reflect(connection)
    rows: dict[str, list[dict[str, Any]]] = {}
    for table in reflected.sorted_tables:
        if table.name != "alembic_version":
            rows[table.name] = []
            for number in range(2):
                given = [column for column in table.columns if column is not table.autoincrement_column]
                row = {column.name: value_for(column, number, rows) for column in given}
                made = connection.execute(insert(table).values(**row)).inserted_primary_key
                rows[table.name].append({**row, **(made._mapping if made else {})})
    return rows


@pytest.mark.parametrize("revision", sorted(migrating.revisions()))
def test_a_database_of_every_earlier_schema_becomes_todays_with_the_rows_of_every_table(
    empty_url: str, revision: str
) -> None:
    database = Database(empty_url)
    try:
        migrating.upgrade(database, None, revision)
        assert database.revision() == revision
        with database.writing() as connection:
            before = fill(connection)
        assert {"users", "boards", "submissions", "gradings", "events"} <= before.keys()
        database.migrate()
        assert database.revision() == REVISION
        assert differences(database) == []
        with database.reading() as connection:
            for name, rows in before.items():
                table = metadata.tables[name]
                found = connection.execute(select(table).order_by(*table.primary_key)).mappings().all()
                kept = [{key: plain(row[key]) for key in rows[0]} for row in found]
                wanted = [{key: plain(value) for key, value in row.items()} for row in rows]
                assert sorted(kept, key=repr) == sorted(wanted, key=repr), name
        if database.is_sqlite:
            with database.reading() as connection:
                assert connection.execute(text("PRAGMA foreign_key_check")).all() == []
        # And it can be worked with.
        accounts = Accounts(database, SetClock(NOON))
        assert accounts.sign_up("ada@example.org", "correct horse battery").role == "participant"
    finally:
        database.close()


def plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value


def test_a_database_that_is_newer_or_not_ours_is_left_alone(empty_url: str) -> None:
    with migrated(empty_url) as database:
        with database.writing() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(EnsueError, match="revision 9999"):
            database.migrate()
        with database.writing() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
        with pytest.raises(EnsueError, match="did not make"):
            database.migrate()


def test_a_table_that_is_altered_keeps_what_refers_to_it(database: Database, clock: SetClock) -> None:
    user = Accounts(database, clock).sign_up("ada@example.org", "correct horse battery")
    cookie = Accounts(database, clock).begin_session(user.id)
    with database.altering() as connection:
        operations = Operations(MigrationContext.configure(connection))
        with operations.batch_alter_table("users", recreate="auto") as table:
            table.alter_column("name", existing_type=sa.String(200), type_=sa.String(300))
    assert Accounts(database, clock).of_session(cookie) == user
    # And references are followed again.
    times = dict.fromkeys(("created_at", "seen_at", "expires_at"), clock.now())
    row = {"cookie_hash": "x", "user_id": "nobody", **times}
    with pytest.raises(DBAPIError), database.writing() as connection:
        connection.execute(insert(sessions).values(**row))


def test_a_migration_that_fails_leaves_the_database_as_it_was(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from alembic import op

    real, calls = op.create_table, []

    def failing(*args: object, **options: object) -> object:
        calls.append(args[0])
        if len(calls) == 5:
            raise RuntimeError("killed")
        return real(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(op, "create_table", failing)
    database = Database(empty_url)
    try:
        with pytest.raises(RuntimeError):
            migrating.upgrade(database, None)
        assert database.revision() is None
        monkeypatch.undo()
        migrating.upgrade(database, None)
        assert differences(database) == []
    finally:
        database.close()
