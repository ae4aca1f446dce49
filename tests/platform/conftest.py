"""Fixtures of the platform's tests: each test that asks for a database runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from starlette.testclient import TestClient

from ensue.platform.clock import SetClock
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import new_id
from ensue.platform.service import Platform, Settings, opened
from ensue.platform.web.app import create_app
from tests.support.services import SERVICES, service

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


class Server:
    """A PostgreSQL on loopback, with a database whose tables are made, to copy."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._prepared = ""

    def run(self, statement: str) -> None:
        url = make_url(self.address).set(drivername="postgresql+psycopg")
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def create(self, name: str, like: str = "template0") -> str:
        self.run(f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
        return make_url(self.address).set(database=name).render_as_string(hide_password=False)

    def prepared(self) -> str:
        """Return the name of a database with today's tables."""
        if not self._prepared:
            name = f"prepared-{new_id()}"
            with migrated(self.create(name)):
                pass
            self._prepared = name
        return self._prepared

    def drop(self, name: str) -> None:
        self.run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@contextmanager
def migrated(url: str) -> Iterator[Database]:
    database = Database(url)
    try:
        database.migrate()
        yield database
    finally:
        database.close()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL of this process, installed where it is missing and can be."""
    # Not a folder of pytest's, which the user that PostgreSQL runs as may not enter.
    folder = Path(tempfile.mkdtemp(prefix="ensue-postgresql-"))
    folder.chmod(0o755)
    try:
        yield Server(service("postgresql", folder))
    finally:
        subprocess.run([SERVICES, "stop", folder], check=False)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'database.sqlite3'}"
        return
    server: Server = request.getfixturevalue("postgresql")
    name = f"test-{new_id()}"
    yield server.create(name)
    server.drop(name)


@pytest.fixture(scope="session")
def sqlite_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with today's tables, to copy."""
    file = tmp_path_factory.mktemp("sqlite") / "prepared.sqlite3"
    with migrated(f"sqlite:///{file}"):
        pass
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database of this test, with today's tables."""
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("sqlite_file"), tmp_path / "database.sqlite3")
        yield f"sqlite:///{tmp_path / 'database.sqlite3'}"
        return
    server: Server = request.getfixturevalue("postgresql")
    name = f"test-{new_id()}"
    yield server.create(name, like=server.prepared())
    server.drop(name)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def module_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database without tables that the tests of a file share."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('shared') / 'database.sqlite3'}"
        return
    server: Server = request.getfixturevalue("postgresql")
    name = f"test-{new_id()}"
    yield server.create(name)
    server.drop(name)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A database of this test, open."""
    with migrated(database_url) as found:
        yield found


@pytest.fixture(autouse=True)
def nobodys_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database of whoever runs the tests is left alone."""
    monkeypatch.delenv("ENSUE_DATABASE", raising=False)


@pytest.fixture
def clock() -> SetClock:
    """A clock that stands at noon until the test moves it."""
    return SetClock(NOON)


@pytest.fixture
def settings(database_url: str, clock: SetClock, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", database=database_url, clock=clock)


@pytest.fixture
def platform(settings: Settings) -> Iterator[Platform]:
    """A platform that is open; no jobs are run."""
    with opened(settings) as found:
        yield found


@pytest.fixture
def client(platform: Platform) -> Iterator[TestClient]:
    """A browser that is not signed in; redirects are not followed. No jobs are run."""
    client = TestClient(create_app(platform), raise_server_exceptions=False, follow_redirects=False)
    yield client
    client.close()
