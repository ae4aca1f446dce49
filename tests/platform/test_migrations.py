"""The tables as the migrations make them, from nothing and from the first schema, are those of schema.py."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, text

from ensue.errors import EnsueError
from ensue.platform.clock import SetClock
from ensue.platform.database import migrating
from ensue.platform.database.opening import REVISION, Database
from ensue.platform.database.schema import events, metadata
from tests.platform.conftest import migrated


def differences(database: Database) -> list[object]:
    with database.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": False}
        )
        return list(compare_metadata(context, metadata))


def test_migrations_from_nothing_make_the_tables_of_the_schema(empty_url: str) -> None:
    with migrated(empty_url) as database:
        assert database.revision() == REVISION
        assert differences(database) == []
        database.migrate()  # again: nothing to do


def test_the_newest_migration_is_the_revision_that_the_code_expects() -> None:
    assert migrating.revisions()[0] == REVISION
    assert migrating.revisions()[-1] == "0001"


@pytest.mark.parametrize("revision", sorted(migrating.revisions()))
def test_a_database_of_every_earlier_schema_becomes_todays_with_its_rows(
    empty_url: str, revision: str, clock: SetClock
) -> None:
    database = Database(empty_url)
    try:
        migrating.upgrade(database, None, revision)
        assert database.revision() == revision
        with database.writing() as connection:
            connection.execute(insert(events).values(at=clock.now(), kind="before", details={"n": 1}))
        database.migrate()
        assert database.revision() == REVISION
        assert differences(database) == []
        with database.reading() as connection:
            row = connection.execute(events.select()).one()
        assert (row.kind, row.details, row.at) == ("before", {"n": 1}, clock.now())
    finally:
        database.close()


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
            database.migrate()
        assert database.revision() is None
        monkeypatch.undo()
        database.migrate()
        assert differences(database) == []
    finally:
        database.close()
