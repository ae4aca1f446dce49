"""Commands on boards, as the command line hands them over: functions of the platform and arguments of JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ensue.platform.boards.baselines import Baselines
from ensue.platform.boards.board import Board, Boards, Wanted
from ensue.platform.boards.exporting import export_board
from ensue.platform.boards.submissions import Submissions
from ensue.platform.service import Command, Platform


def create(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make a board."""
    folder = arguments.pop("labels", None)
    made = Boards(platform).create(Wanted(**arguments), Path(folder) if folder else None)
    return facts(made)


def list_all(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """List every board."""
    with platform.database.reading() as connection:
        return {"boards": [facts(board) for board in Boards(platform).all(connection)]}


def change(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Change a board."""
    return facts(Boards(platform).change(arguments.pop("name"), arguments))


def give_labels(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Give a board other labels."""
    return Submissions(platform).replace_labels(arguments["name"], Path(arguments["labels"]))


def regrade(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Grade again what is on a board."""
    return Submissions(platform).regrade(arguments["name"])


def import_baselines(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Put baselines on a board: published and measured ones of its suite, or those of a file."""
    baselines, words = Baselines(Boards(platform)), arguments.get("toml")
    if words is None:
        return baselines.import_published(arguments["name"])
    return baselines.import_file(arguments["name"], words)


def export(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Write everything of a board into a folder of this machine."""
    return export_board(platform, arguments["name"], Path(arguments["folder"]))


def facts(board: Board) -> dict[str, Any]:
    """Return what an organiser is told of a board."""
    told = (
        "id",
        "name",
        "title",
        "about",
        "suite",
        "split",
        "rounding",
        "quota_day",
        "quota_month",
        "is_open",
    )
    more = ("is_listed", "labels_version")
    return {name: getattr(board, name) for name in (*told, *more)}


BOARD_COMMANDS: dict[str, Command] = {
    "board.create": create,
    "board.list": list_all,
    "board.change": change,
    "board.labels": give_labels,
    "board.regrade": regrade,
    "board.import-baselines": import_baselines,
    "board.export": export,
}
