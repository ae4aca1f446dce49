"""Bring a database to today's tables with Alembic; imported only where there is something to do."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from ensue.errors import EnsueError
from ensue.platform.database.opening import REVISION, Database, empty, lock_schema

_FOLDER = Path(__file__).parent / "migrations"


def upgrade(database: Database, found: str | None, target: str = REVISION) -> None:
    """Run the migrations from the revision found up to the target, all in one transaction."""
    if found is None and not empty(database):
        raise EnsueError(f"The database {database} has tables that Ensue did not make; give an empty one.")
    if found is not None and found not in revisions():
        raise EnsueError(
            f"The database {database} is of revision {found}, which this version of Ensue does not know;"
            " install the version that wrote it, or a newer one."
        )
    with database.altering() as connection:
        lock_schema(connection)
        command.upgrade(configuration(connection), target)


def revisions() -> list[str]:
    """Return every revision there is, the newest first."""
    return [script.revision for script in ScriptDirectory(str(_FOLDER)).walk_revisions()]


def configuration(connection: Connection) -> Config:
    """Return what Alembic needs to work on an open connection."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER))
    config.attributes["connection"] = connection
    return config
