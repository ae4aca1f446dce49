"""What an organiser uploads for a board: labels, and perhaps a `board.toml` at the top, which is its definition."""

from __future__ import annotations

from pathlib import Path

from ensue.platform.boards.grading import DEFINITION
from ensue.platform.refusals import Invalid


def take_definition(folder: Path) -> str | None:
    """Take a board.toml out of the top of a folder and return its text; None where there is none."""
    file = folder / DEFINITION
    if not file.is_file():
        return None
    try:
        text = file.read_text("utf-8")
    except UnicodeDecodeError:
        raise Invalid("The board.toml is not text in UTF-8.") from None
    file.unlink()
    return text
