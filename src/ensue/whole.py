"""Files written whole or not at all, and folders that are removed again where nothing came into them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ensue.errors import EnsueError


def write_whole(path: Path, pieces: Iterable[str], *, make_folder: bool = False) -> Path:
    """Write the pieces to a file; whatever fails, no half of it is left, and what was there before stays."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if make_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            file.writelines(pieces)
        part.replace(path)
    except OSError as error:
        raise EnsueError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):
            part.unlink()
    return path


def make_folders(path: Path) -> list[Path]:
    """Make a folder and those above it; return the ones that were not there, the innermost first."""
    missing = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    path.mkdir(parents=True, exist_ok=True)
    return missing


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those that are empty, in the order given."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def make_readable(folder: Path) -> None:
    """Give every file in a folder the mode a new file has; safetensors writes its own for the owner alone."""
    new = folder / f".mode.{os.getpid()}"
    new.touch()
    mode = new.stat().st_mode & 0o777
    new.unlink()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(mode)
