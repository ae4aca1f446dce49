"""Back up a platform to one file, restore it into an empty home, and check that a home is whole.

A backup is a tar file: each table as JSON lines, all read in one transaction; the uploads that the tables name, the
labels, and last a list of everything with its SHA-256, without which a backup is not whole. It is the same for SQLite
and PostgreSQL, so that it is also the way from one to the other. The key is not in it: a restored home makes its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, DateTime, MetaData, Table, delete, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from ensue.atomic import replacing, write_json
from ensue.errors import EnsueError
from ensue.platform.boards.labels import digest_of
from ensue.platform.database import schema
from ensue.platform.database.opening import REVISION, Database, empty
from ensue.platform.home import Home
from ensue.platform.refusals import Conflict
from ensue.platform.service import Platform, Settings
from ensue.records import file_digest
from ensue.version import __version__

_LIST = "backup.json"
_AT_ONCE = 500


def write_backup(platform: Platform, path: Path) -> dict[str, Any]:
    """Write a backup while everything goes on, and return what is in it. Only its owner may read the file."""
    path = path.absolute()
    _remove_unfinished(path)
    with replacing(path) as part, platform.home.keeping_files():
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT, 0o600))
        with tarfile.open(part, "w:gz" if path.suffix in {".gz", ".tgz"} else "w") as tar:
            made = _Backup(tar)
            with platform.database.reading() as connection:
                counts = {
                    table.name: made.add_table(connection, table) for table in schema.metadata.sorted_tables
                }
                digests = sorted(set(connection.execute(select(schema.uploads.c.digest)).scalars()))
            for digest in digests:
                if not platform.home.upload(digest).is_file():
                    raise EnsueError(f"The upload {digest} is missing; see ensue serve --check.")
                made.add_file(f"uploads/{digest}", platform.home.upload(digest))
            for file in _files(platform.home.labels):
                made.add_file(f"labels/{file.relative_to(platform.home.labels)}", file)
            facts = {"ensue": __version__, "schema": REVISION, "at": platform.clock.now().isoformat()}
            listed = {**facts, "home": platform.home.id, "rows": counts, "files": made.files}
            made.add(_LIST, json.dumps(listed, indent=1).encode())
    return {"path": str(path), "rows": counts, "uploads": len(digests), "bytes": path.stat().st_size}


def _remove_unfinished(path: Path) -> None:
    """Remove what earlier backups to the same file left when they were killed: it holds labels, too."""
    for part in path.parent.iterdir() if path.parent.is_dir() else ():
        words = part.name.removeprefix(f".{path.name}.").removesuffix(".part")
        process = words.partition("-")[0]
        if part.name == f".{path.name}.{words}.part" and process.isdecimal() and not _runs(int(process)):
            part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass  # another user's
    return True


class _Backup:
    """A tar file that is being written, with the digest of everything in it."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self.tar = tar
        self.files: dict[str, str] = {}

    def add(self, name: str, contents: bytes) -> None:
        self.files[name] = hashlib.sha256(contents).hexdigest()
        self.tar.addfile(self._entry(name, len(contents)), BytesIO(contents))

    def add_file(self, name: str, path: Path) -> None:
        self.files[name] = file_digest(path)
        with path.open("rb") as file:
            self.tar.addfile(self._entry(name, path.stat().st_size), file)

    def add_table(self, connection: Connection, table: Table) -> int:
        """Add a table in files of some rows each, so that none need be held whole."""
        query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_AT_ONCE)
        count = 0
        for number, rows in enumerate(connection.execute(query).mappings().partitions(_AT_ONCE)):
            lines = [json.dumps({k: _plain(v) for k, v in row.items()}, ensure_ascii=False) for row in rows]
            self.add(f"tables/{table.name}/{number:06d}.jsonl", ("\n".join(lines) + "\n").encode())
            count += len(lines)
        return count

    @staticmethod
    def _entry(name: str, size: int) -> tarfile.TarInfo:
        entry = tarfile.TarInfo(name)
        entry.size, entry.mode = size, 0o600
        return entry


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def restore(settings: Settings, path: Path) -> dict[str, Any]:
    """Restore a backup into a home and a database that hold nothing yet; all of it, or nothing."""
    if not path.is_file():
        raise EnsueError(f"There is no file {path} to restore from.")
    home = Home(settings.home)
    with home.held():
        url = settings.database or f"sqlite:///{home.path / 'database.sqlite3'}"
        database = Database(url)
        try:
            database.hold()
            _refuse_full(database, home)
            folder = home.work_folder("restore")
            try:
                listed = _unpacked(path, folder)
                # First: a database that is restored is always one that belongs to this home.
                kind = database.url.get_backend_name()
                write_json(home.path / "home.json", {"id": listed["home"], "database": kind})
                _load(database, home, folder, listed)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            database.close()
    return {"home": str(home.path), "at": listed["at"], "rows": listed["rows"]}


def _refuse_full(database: Database, home: Home) -> None:
    if empty(database):
        return
    if database.revision() == REVISION:
        with database.reading() as connection:
            tables = [table for table in schema.metadata.sorted_tables if table is not schema.events]
            # That it was opened once says nothing.
            done = select(schema.events.c.number).where(schema.events.c.kind != "home").limit(1)
            rows = (connection.execute(select(table).limit(1)).first() for table in tables)
            if connection.execute(done).first() is None and not any(rows):
                return
    raise Conflict(
        f"The database {database} is not empty; restore into a new --home (and an empty --database)."
    )


def _unpacked(path: Path, folder: Path) -> dict[str, Any]:
    """Unpack a backup and check that everything listed is there as it was."""
    try:
        with tarfile.open(path) as tar:
            tar.extractall(folder, filter="data")
        listed = json.loads((folder / _LIST).read_text("utf-8"))
        for name, digest in listed["files"].items():
            if not (folder / name).is_file() or file_digest(folder / name) != digest:
                raise EnsueError(f"{path} is damaged: {name} is not as it was written; take another backup.")
        schema_, home, _, _ = (listed[key] for key in ("schema", "home", "at", "rows"))
    except (tarfile.TarError, OSError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise EnsueError(
            f"{path} is no whole backup of Ensue ({type(error).__name__}); take another."
        ) from None
    if not isinstance(schema_, str) or not isinstance(home, str):
        raise EnsueError(f"{path} is no whole backup of Ensue; take another.")
    return dict(listed)


def _load(database: Database, home: Home, folder: Path, listed: dict[str, Any]) -> None:
    from ensue.platform.database import migrating

    if database.revision() is None:
        if listed["schema"] not in migrating.revisions():
            raise EnsueError(
                f"The backup was written by Ensue {listed['ensue']}, which is newer; install that version."
            )
        migrating.upgrade(database, None, listed["schema"])
    elif listed["schema"] != REVISION:
        raise EnsueError("The backup has an older schema; restore it into a database without tables.")
    try:
        with database.writing() as connection:
            connection.execute(delete(schema.events))
            for table in _tables(connection, listed["schema"]):
                _insert(connection, table, folder / "tables" / table.name)
                _set_sequence(connection, table)
            # Before the rows are kept: what they name is there when they are.
            for part, target in (("uploads", home.uploads), ("labels", home.labels)):
                _move(folder / part, target)
            os.sync()
    except SQLAlchemyError as error:
        raise EnsueError(f"The backup does not fit the database ({type(error).__name__}).") from None
    database.migrate()


def _tables(connection: Connection, revision: str) -> Iterable[Table]:
    """Return the tables of a revision, those that others refer to first."""
    if revision == REVISION:
        return schema.metadata.sorted_tables
    reflected = MetaData()
    reflected.reflect(connection)
    return [table for table in reflected.sorted_tables if table.name != "alembic_version"]


def _insert(connection: Connection, table: Table, folder: Path) -> None:
    for file in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        convert = {column.name: _reader(connection, column) for column in table.columns}
        connection.execute(
            insert(table), [{name: convert[name](value) for name, value in row.items()} for row in rows]
        )


def _reader(connection: Connection, column: Column[Any]) -> Callable[[Any], Any]:
    if not isinstance(column.type, DateTime | schema.Time):
        return lambda value: value
    # A type found by looking at SQLite's tables knows of no zones.
    bare = connection.dialect.name == "sqlite" and not isinstance(column.type, schema.Time)

    def read(value: str | None) -> datetime | None:
        if value is None:
            return None
        time = datetime.fromisoformat(value).astimezone(UTC)
        return time.replace(tzinfo=None) if bare else time

    return read


def _set_sequence(connection: Connection, table: Table) -> None:
    """Have PostgreSQL number the next row after those there are; SQLite does by itself."""
    if connection.dialect.name != "postgresql" or "number" not in table.primary_key.columns:
        return
    last = connection.execute(select(func.max(table.c.number))).scalar()
    if last is not None:
        sequence = f"pg_get_serial_sequence('{table.name}', 'number')"
        connection.execute(text(f"SELECT setval({sequence}, :last)"), {"last": last})


def _move(source: Path, target: Path) -> None:
    for file in _files(source):
        place = target / file.relative_to(source)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.replace(file, place)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder, but for what is hidden: it is not whole yet."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _files(path)
        elif path.is_file():
            yield path


def check(platform: Platform) -> list[str]:
    """Return what is wrong with a platform, a sentence each; nothing where it is whole."""
    home, problems = platform.home, []
    with platform.database.reading() as connection:
        if platform.database.is_sqlite:
            told = connection.execute(text("PRAGMA integrity_check(5)")).scalars().all()
            problems += [f"The database is damaged: {words}." for words in told if words != "ok"]
            broken = connection.execute(text("PRAGMA foreign_key_check")).all()
            problems += [f"A row of {row[0]} refers to one that is missing." for row in broken[:5]]
        query = select(schema.uploads.c.digest, func.max(schema.uploads.c.size)).group_by(
            schema.uploads.c.digest
        )
        uploads = connection.execute(query).all()
        named = select(schema.boards.c.id, schema.boards.c.name, schema.boards.c.labels_digest)
        boards = connection.execute(named.where(schema.boards.c.labels_digest.is_not(None))).all()
    for board in boards:
        folder = home.labels / board.id / board.labels_digest
        if not folder.is_dir():
            problems.append(f"The labels of the board {board.name} are missing; import them again.")
        elif digest_of(folder) != board.labels_digest:
            problems.append(f"The labels of the board {board.name} are not as they were; import them again.")
    for digest, size in uploads:
        file = home.upload(digest)
        if not file.is_file():
            problems.append(f"The upload {digest} is missing; restore it from a backup.")
        elif file.stat().st_size != size:
            problems.append(f"The upload {digest} has {file.stat().st_size:,} bytes instead of {size:,}.")
        elif file_digest(file) != digest:
            problems.append(f"The upload {digest} is not as it was; restore it from a backup.")
    for private in (home.path, home.path / "key", home.labels):
        if private.stat().st_mode & 0o077:
            problems.append(f"{private} can be read by others; chmod go-rwx {private}.")
    return problems
