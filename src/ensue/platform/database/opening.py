"""Open the database: SQLite in a file by default, PostgreSQL by its address; the same tables and code for both.

With SQLite, exactly one process opens the file (the home's lock sees to it) and all writes go through one connection.
Versions before 3.51.3 can lose a checkpoint when two connections write or checkpoint at once, so readers do neither.
With PostgreSQL a writing transaction is READ COMMITTED: what reads before it decides locks the row it decides about,
`select(…).with_for_update()`, which SQLite leaves out because there the whole transaction holds the one writer.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from ensue.errors import EnsueError
from ensue.lazy import from_extra
from ensue.platform.database.schema import metadata

# The revision of the schema in schema.py: the newest file in migrations/versions.
REVISION = "0003"
_SCHEMA_LOCK = 0x656E737565  # any number, the same in all servers of a database
_HOLD_LOCK = 0x656E737566
_WAIT = 30.0  # seconds that one transaction waits for another
_PATIENCE = 500  # milliseconds that a log which is read is waited for
_LITTLE_PATIENCE = 20  # the same where it is tried again soon
_HOLD_WAIT = 10.0  # and one process for another that just ended


class Database:
    """A database that is open, its tables as they are today.

    `reading()` gives a connection that sees one state of the database throughout and cannot change it; `writing()`
    one whose changes are kept together at the end of the block, or not at all where it raises. One process writes, so
    whoever saw `version` before reading need not read again as long as it stays the same.
    """

    def __init__(self, url: str | URL) -> None:
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._lock: IO[str] | None = None
        self._held: Connection | None = None
        self._counting, self.version = threading.Lock(), 0
        # A server that was killed may have left something, too.
        self._is_left = True
        self._writer, self._reader = self._sqlite() if self.is_sqlite else self._postgresql()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection to read with."""
        with self._connected(self._reader) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection to write with; `version` is another once what was written can be read."""
        try:
            with self._connected(self._writer) as connection:
                yield connection
        finally:
            with self._counting:
                self.version += 1

    def drop_deleted(self) -> None:
        """Have SQLite's log forget what was deleted just now; where somebody reads it, `drop_left` does it later."""
        if self.is_sqlite:
            self._drop(_PATIENCE)

    def drop_left(self) -> None:
        """Have SQLite's log forget what it could not while somebody read it; what is to be done regularly."""
        if self.is_sqlite and self._is_left:
            self._drop(_LITTLE_PATIENCE)

    def _drop(self, patience: int) -> None:
        with self._writer.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute(f"PRAGMA busy_timeout={patience}").fetchall()
            try:
                ((is_busy, *_),) = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._is_left = bool(is_busy)
            finally:
                raw.execute(f"PRAGMA busy_timeout={int(1000 * _WAIT)}").fetchall()

    @contextmanager
    def altering(self) -> Iterator[Connection]:
        """Give a connection to change tables with.

        SQLite alters a table by copying and dropping it, and a drop deletes what refers to it, so references are not
        followed meanwhile and looked at in the end.
        """
        if not self.is_sqlite:
            with self.writing() as connection:
                yield connection
            return
        with self._writer.connect() as connection:
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.execute("PRAGMA foreign_keys=OFF")  # of no effect within a transaction
            try:
                with connection.begin():
                    yield connection
                    broken = connection.execute(text("PRAGMA foreign_key_check")).first()
                    if broken is not None:
                        raise EnsueError(f"A row of {broken[0]} in {self} refers to one that is missing.")
            finally:
                raw.execute("PRAGMA foreign_keys=ON")

    @contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        try:
            connection = engine.connect()
        except DBAPIError as error:
            raise DatabaseUnavailable(f"The database {self} cannot be opened: {_why(error)}.") from None
        with connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Close every connection; the writer last, since the last one to close a SQLite file tidies it up."""
        if self._held is not None:
            with suppress(SQLAlchemyError):
                self._held.close()
        self._reader.dispose()
        self._writer.dispose()
        if self._lock is not None:
            self._lock.close()

    def hold(self) -> None:
        """Refuse where another process has this database open, and keep others out as long as it is open here.

        A file of SQLite is held from the start; on PostgreSQL a connection that is kept holds a lock.
        """
        if self.is_sqlite or self._held is not None:
            return
        try:
            connection = self._writer.connect().execution_options(isolation_level="AUTOCOMMIT")
            until = time.monotonic() + _HOLD_WAIT
            while not connection.execute(text(f"SELECT pg_try_advisory_lock({_HOLD_LOCK})")).scalar():
                if time.monotonic() > until:
                    connection.close()
                    raise EnsueError(
                        f"The database {self} is open already, from another --home; close that first."
                    )
                time.sleep(0.05)
        except DBAPIError as error:
            raise DatabaseUnavailable(f"The database {self} cannot be opened: {_why(error)}.") from None
        connection.detach()  # of the pool, which would give it to others
        self._held = connection

    def revision(self) -> str | None:
        """Return the revision of the tables, or None where there are none."""
        with self.reading() as connection:
            if not connection.dialect.has_table(connection, "alembic_version"):
                return None
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()

    def migrate(self) -> None:
        """Bring the tables to today's revision.

        A new database is given today's tables at once; a test sees to it that they are those of the migrations.
        """
        found = self.revision()
        if found == REVISION:
            return
        if found is None and empty(self):
            self._create()
            return
        from ensue.platform.database import migrating

        migrating.upgrade(self, found)

    def _create(self) -> None:
        """Make today's tables in one transaction."""
        with self.writing() as connection:
            lock_schema(connection)
            if connection.dialect.has_table(connection, "alembic_version"):
                return
            metadata.create_all(connection)
            connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) PRIMARY KEY)"))
            connection.execute(text(f"INSERT INTO alembic_version VALUES ('{REVISION}')"))

    def __str__(self) -> str:
        """Return the address without its password."""
        return self.url.render_as_string(hide_password=True)

    def _sqlite(self) -> tuple[Engine, Engine]:
        self._lock = self._alone(Path(str(self.url.database)))
        shared: dict[str, Any] = {
            "connect_args": {"check_same_thread": False, "timeout": _WAIT, "isolation_level": None},
            "poolclass": QueuePool,
            "pool_timeout": _WAIT,
            **_ENGINE,
        }
        # One connection and none beyond it: the pool is the lock.
        writer = create_engine(self.url, pool_size=1, max_overflow=0, **shared)
        reader = create_engine(self.url, pool_size=8, max_overflow=32, **shared)
        event.listen(writer, "connect", _set_writer)
        event.listen(reader, "connect", _set_reader)
        event.listen(writer, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
        event.listen(reader, "begin", lambda connection: connection.exec_driver_sql("BEGIN"))
        return writer, reader

    def _alone(self, file: Path) -> IO[str]:
        """Make the file, for its owner alone, and hold its lock: exactly one process may have it open."""
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
            lock = file.with_name(f"{file.name}.lock").open("a")
        except OSError as error:
            raise EnsueError(f"The database {file} cannot be used: {error.strerror}.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise EnsueError(
                f"The database {file} is open already, from another --home; close that first."
            ) from None
        return lock

    def _postgresql(self) -> tuple[Engine, Engine]:
        engine = create_engine(
            self.url,
            pool_size=8,
            max_overflow=24,
            pool_timeout=_WAIT,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 10},
            isolation_level="READ COMMITTED",
            **_ENGINE,
        )
        reader = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        return engine, reader


class DatabaseUnavailable(EnsueError):
    """The database cannot be reached; trying again later may help."""


def parse_url(url: str | URL) -> URL:
    """Read a database's address: `sqlite:///FILE` or `postgresql://USER:PASSWORD@HOST/NAME`."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Without the words given: they may hold a password.
        raise EnsueError(
            "--database is no address; give sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
        ) from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise EnsueError("--database sqlite:// names no file; give sqlite:///FILE.")
        return parsed.set(drivername="sqlite+pysqlite")
    if kind in {"postgresql", "postgres"}:
        from_extra("psycopg", "PostgreSQL", "its driver psycopg", "postgresql")
        return parsed.set(drivername="postgresql+psycopg")
    raise EnsueError(f"--database {kind}:// is not supported; give sqlite:///FILE or postgresql://….")


def lock_schema(connection: Connection) -> None:
    """Have a second server that starts on the same PostgreSQL wait; afterwards it finds nothing to do."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_SCHEMA_LOCK})"))


def empty(database: Database) -> bool:
    """Return whether a database has none of our tables."""
    with database.reading() as connection:
        return not any(connection.dialect.has_table(connection, name) for name in metadata.tables)


def _set_writer(connection: sqlite3.Connection, _: object) -> None:
    # What is deleted is overwritten: somebody may have asked for it.
    kept = ("journal_mode=WAL", "synchronous=FULL", "mmap_size=0", "foreign_keys=ON")
    for pragma in (*kept, "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _set_reader(connection: sqlite3.Connection, _: object) -> None:
    for pragma in ("query_only=ON", "mmap_size=0", "wal_autocheckpoint=0"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _why(error: SQLAlchemyError) -> str:
    """Return the driver's own words, in one line."""
    words = str(getattr(error, "orig", error)).strip().splitlines()
    return words[0].rstrip(".") if words else type(error).__name__


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


# Statements in errors come without their values, which may be secrets.
_ENGINE: dict[str, Any] = {"hide_parameters": True, "json_serializer": _dump}
