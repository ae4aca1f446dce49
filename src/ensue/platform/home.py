"""A home: the folder that holds everything of one platform, and what is said in it of a server that runs.

home.json     its id and which kind of database it has
database.sqlite3  (where the database is no PostgreSQL)
key           32 random bytes, for its owner alone
uploads/      what was handed in, each file named by its SHA-256
labels/       private labels, one folder a board; never under an address
work/         what jobs under way read and write
lock          held by the one process that has the home open
server.json   where the server that has it open can be asked, for its owner alone
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from ensue.atomic import replacing, write_json
from ensue.errors import EnsueError
from ensue.platform.database.opening import parse_url
from ensue.platform.database.schema import new_id
from ensue.platform.refusals import TooLarge

_PIECE = 1 << 20
_UNFINISHED = ".new-"
_WAIT = 10.0  # seconds that a command may keep others waiting


class InUse(EnsueError):
    """Another process has the home open."""


class Home:
    """The folder of a platform; made, with what it needs, when it is first used."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()
        self.uploads, self.labels, self.work = self.path / "uploads", self.path / "labels", self.path / "work"
        self.server_file = self.path / "server.json"
        self._files, self._kept = threading.Lock(), 0

    def make(self) -> None:
        """Make what is not there yet; nobody but its owner may look into the folder."""
        try:
            for folder in (self.path, self.uploads, self.labels, self.work):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (self.path / "home.json").exists():
                write_json(self.path / "home.json", {"id": new_id()})
            if not (self.path / "key").exists():
                with replacing(self.path / "key") as part, private_file(part) as file:
                    file.write(secrets.token_bytes(32))
        except OSError as error:
            raise EnsueError(f"The home {self.path} cannot be used: {error.strerror or error}.") from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the home's lock; refuse where a server has it, and wait a little for a command that has."""
        self.make()
        until = time.monotonic() + _WAIT
        with (self.path / "lock").open("a") as file:
            while not _locked(file):
                if self.server() is not None or time.monotonic() > until:
                    raise InUse(f"The home {self.path} is in use by another process; stop it first.")
                time.sleep(0.05)
            self.withdraw()  # what a server that was killed left behind
            yield

    @property
    def facts(self) -> dict[str, Any]:
        """Return what home.json says."""
        try:
            found = json.loads((self.path / "home.json").read_text("utf-8"))
        except (OSError, ValueError):
            raise EnsueError(f"{self.path / 'home.json'} cannot be read; is this a home of Ensue?") from None
        if not isinstance(found, dict) or not isinstance(found.get("id"), str):
            raise EnsueError(f"{self.path / 'home.json'} is damaged; restore the home from a backup.")
        return found

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    def key(self) -> bytes:
        """Return the key that forms are signed with."""
        return (self.path / "key").read_bytes()

    def database_url(self, given: str | None) -> str:
        """Return the address of the home's database: the one given, or the file in it.

        A home that has been used with PostgreSQL is not opened with SQLite by mistake, nor the other way round.
        """
        file = self.path / "database.sqlite3"
        url = given or f"sqlite:///{file}"
        kind = parse_url(url).get_backend_name()
        facts = self.facts
        before = facts.get("database")
        if before not in (None, kind):
            raise EnsueError(f"The home {self.path} belongs to a {before} database; give it with --database.")
        if before is None:
            write_json(self.path / "home.json", {**facts, "database": kind})
        return url

    # Files that were handed in

    def keep_upload(self, file: BinaryIO, most: int) -> tuple[str, int]:
        """Keep a file under the digest of its contents; return both digest and size. It is on the disk afterwards."""
        part = self.uploads / f"{_UNFINISHED}{new_id()}"
        try:
            with private_file(part) as kept:
                digest, size = copy_within(file, kept, most)
                kept.flush()
                os.fsync(kept.fileno())
            with self._files:
                part.replace(self.upload(digest))
            sync_folder(self.uploads)
        finally:
            part.unlink(missing_ok=True)
        return digest, size

    def upload(self, digest: str) -> Path:
        """Return where a file lies."""
        return self.uploads / digest

    @contextmanager
    def keeping_files(self) -> Iterator[None]:
        """Have no file removed as long as the block lasts."""
        with self._files:
            self._kept += 1
        try:
            yield
        finally:
            with self._files:
                self._kept -= 1

    def sweep(self, named: Collection[str], older: float = 3600.0) -> int:
        """Remove uploads that nothing names and that have lain for a while; return how many."""
        removed = 0
        for file in list(self.uploads.iterdir()):
            # One that was just handed in is named soon.
            with self._files, contextlib.suppress(OSError):
                if self._kept or file.name in named or time.time() - file.stat().st_mtime < older:
                    continue
                file.unlink()
                removed += 1
        return removed

    def tidy(self) -> None:
        """Remove what a process that was killed left unfinished; call it while the lock is held."""
        for part in self.uploads.glob(f"{_UNFINISHED}*"):
            part.unlink(missing_ok=True)
        for folder in self.work.iterdir():
            shutil.rmtree(folder, ignore_errors=True)

    def work_folder(self, name: str) -> Path:
        """Make an empty folder for a job under way."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    # The server that has it open

    def announce(self, url: str) -> str:
        """Say where the server of this home can be asked, and return the key to ask it with."""
        key = secrets.token_urlsafe(32)
        with replacing(self.server_file) as part, private_file(part) as file:
            file.write(json.dumps({"url": url, "key": key, "pid": os.getpid()}).encode())
        return key

    def withdraw(self) -> None:
        """Say that no server has this home open."""
        with contextlib.suppress(OSError):
            self.server_file.unlink()

    def server(self) -> dict[str, Any] | None:
        """Return what a server said of itself, or None."""
        try:
            found = json.loads(self.server_file.read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def private_file(path: Path) -> BinaryIO:
    """Open a new file that its owner alone may read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def copy_within(file: BinaryIO, copy: BinaryIO, most: int) -> tuple[str, int]:
    """Copy a file of at most so many bytes; return its digest and its size."""
    digest, size = hashlib.sha256(), 0
    while piece := file.read(_PIECE):
        size += len(piece)
        if size > most:
            raise TooLarge(f"The file is larger than {most / 1e6:,.0f} MB, the most taken here.")
        digest.update(piece)
        copy.write(piece)
    return digest.hexdigest(), size
