"""Lists of work ids, one a line: which works to use and which to leave out."""

from __future__ import annotations

from pathlib import Path

from ensue.errors import EnsueError


def read_ids(path: Path) -> list[str]:
    """The ids in a file, one a line; blank lines and those that begin with # are passed over."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise EnsueError(f"{path} is no readable list of ids: {error}.") from error
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found:
        raise EnsueError(f"{path} names no work: write one id a line.")
    return list(dict.fromkeys(found))
