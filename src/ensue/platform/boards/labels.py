"""Private labels: copied into the home for its owner alone, each version in a folder named by its digest.

`labels/BOARD/DIGEST/data/…` holds what the organiser gave, beside `board.toml` where the board is no suite's. Nothing
there is under an address. A version is whole before the database names it, and is removed only when the server starts
and names another: a grading under way may still read it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import select

from ensue.errors import EnsueError
from ensue.platform.boards.grading import DATA, DEFINITION
from ensue.platform.database.opening import Database
from ensue.platform.database.schema import boards, new_id
from ensue.platform.home import Home, private_file, sync_folder
from ensue.platform.refusals import Invalid
from ensue.records import file_digest

_UNFINISHED = ".new-"


def take_definition(folder: Path) -> str | None:
    """Take a board.toml out of the top of what an organiser uploads and return its text; None where there is none."""
    file = folder / DEFINITION
    if not file.is_file():
        return None
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError:
        raise Invalid("The board.toml is not text in UTF-8.") from None
    file.unlink()
    return text


@contextmanager
def copied(home: Home, board_id: str, given: Path, definition: str | None) -> Iterator[Path]:
    """Copy a folder, or a file, of labels into the home and give where the copy lies; `keep` makes it a version.

    What was not kept is removed at the end of the block.
    """
    folder = home.labels / board_id / f"{_UNFINISHED}{new_id()}"
    try:
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
        if given.is_dir():
            _copy(given, folder / DATA)
        elif given.exists():
            (folder / DATA).mkdir(mode=0o700)
            _copy_file(given, folder / DATA / given.name)
        else:
            raise EnsueError(f"{given} is not there; name the folder that holds the labels.")
        if definition is not None:
            _write(folder / DEFINITION, definition.encode())
        yield folder
    except OSError as error:
        raise EnsueError(f"The labels {given} cannot be copied: {error.strerror or error}.") from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep(folder: Path) -> str:
    """Make a copy a version, on the disk under its digest, and return that."""
    digest = digest_of(folder)
    kept = folder.with_name(digest)
    if not kept.exists():
        folder.rename(kept)
        sync_folder(kept.parent)
        sync_folder(kept.parent.parent)
    return digest


def folder_of(home: Home, board_id: str, digest: str) -> Path:
    """Return where a version of a board's labels lies."""
    return home.labels / board_id / digest


def digest_of(folder: Path) -> str:
    """Return a digest of the names and contents of all files of a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            digest.update(f"{file_digest(path)} {name}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def tidy(home: Home, database: Database) -> None:
    """Remove versions that no board names; call it before anything is graded."""
    with database.reading() as connection:
        named = {row.id: row.labels_digest for row in connection.execute(select(boards))}
    for board in home.labels.iterdir():
        for version in board.iterdir() if board.is_dir() else ():
            if version.name != named.get(board.name):
                shutil.rmtree(version, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    """Copy a folder, without what is hidden; nobody but the owner may look into the copy."""
    target.mkdir(mode=0o700)
    for path in sorted(source.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            _copy(path, target / path.name)
        elif path.is_file():
            _copy_file(path, target / path.name)
    sync_folder(target)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as file, private_file(target) as copy:
        shutil.copyfileobj(file, copy)
        copy.flush()
        os.fsync(copy.fileno())


def _write(path: Path, content: bytes) -> None:
    with private_file(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
