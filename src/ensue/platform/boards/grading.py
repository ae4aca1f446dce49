"""What is done with a board's labels, each in a process of its own: `describe`, `check` and `grade`.

The database is never opened here, and nothing that `check` and `grade` return or raise holds a label: of what a
grader says only the problems of the file are passed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.errors import EnsueError
from ensue.platform.refusals import Invalid
from ensue.version import __version__

if TYPE_CHECKING:
    from ensue.benchmarks.grading import Board

# Where the labels of a board lie in the folder of one version of them, and the definition of one that is no suite's.
DATA, DEFINITION = "data", "board.toml"
_NAMED = 5


def describe(folder: str, given: str, suite: str | None, split: str | None, **options: Any) -> dict[str, Any]:
    """Open a board and return what it takes and its columns; refuse labels that it cannot be opened with.

    This is for its organiser, so the words of an error are passed on; `given` is what they called the folder.
    """
    try:
        board = _open(folder, suite, split, **options)
    except EnsueError as error:
        told = str(error).replace(str(Path(folder) / DATA), given)
        raise Invalid(told.replace(str(Path(folder) / DEFINITION), DEFINITION)) from None
    parts = board.parts()
    columns = [
        column._asdict() | {"settings": dict(column.settings), "covers": parts.get(column.task, "")}
        for column in board.columns
    ]
    return {"suffix": board.suffix, "split": board.split, "columns": columns}


def check(file: str, name: str, **board: Any) -> list[dict[str, Any]]:
    """Return what is wrong with a file that was handed in, nothing where it can be graded."""
    problems = _open(**board).validate(Path(file))
    return [{**one._asdict(), "file": _called(one.file, file, name)} for one in problems]


def grade(file: str, name: str, labels_version: int, **board: Any) -> dict[str, Any]:
    """Grade a file: what `ensue grade` makes of it, and which labels it was graded with."""
    from ensue.benchmarks.grading import Refused

    opened = _open(**board)  # what is wrong with labels is not passed on
    try:
        graded = opened.grade(Path(file))
    except Refused as refused:
        first = [one._replace(file=_called(one.file, file, name)) for one in refused.problems[:_NAMED]]
        told = " ".join(str(one) for one in first)
        raise Invalid(f"The file does not fit the board's data: {told}") from None
    return {**graded.as_dict(), "labels_version": labels_version, "version": __version__}


def _open(
    folder: str,
    suite: str | None,
    split: str | None,
    tasks: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    partial: bool = False,
) -> Board:
    from ensue.benchmarks.grading import open_board

    source = suite or Path(folder) / DEFINITION
    chosen = {"split": split} if split else {}
    return open_board(
        source, Path(folder) / DATA, tasks=tasks, settings=settings or None, partial=partial, **chosen
    )


def _called(file: str, path: str, name: str) -> str:
    """Return a file as its owner calls it; on the server it has another name."""
    return name if file == Path(path).name else file
