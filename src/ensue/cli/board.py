"""`ensue board`: make, list, open, close, change and regrade the boards of a platform."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ensue import console
from ensue.cli.serve import Platform, command_of
from ensue.errors import EnsueError

app = typer.Typer(help="Make and keep boards.", no_args_is_help=True, rich_markup_mode=None)

Name = Annotated[str, typer.Argument(help="The board's name in addresses.")]
Title = Annotated[str | None, typer.Option(help="Its title (default: its name).")]
About = Annotated[str | None, typer.Option(help="What it is about.")]
Day = Annotated[
    int | None, typer.Option(min=1, help="Submissions a user may make a day, in UTC (default 2).")
]
Month = Annotated[int | None, typer.Option(min=1, help="Submissions a user may make a month (default 6).")]
Rounding = Annotated[
    int | None,
    typer.Option(min=1, max=6, help="Decimal places of scores, as fractions (default 3)."),
]


@command_of(app)
def create(
    platform: Platform,
    name: Name,
    labels: Annotated[Path, typer.Option(help="The folder with the data and their private labels.")],
    suite: Annotated[str | None, typer.Option(help="The benchmark, such as superglue.")] = None,
    board: Annotated[Path | None, typer.Option(help="A board.toml, for data of your own.")] = None,
    split: Annotated[str | None, typer.Option(help="The split that is graded (default: test).")] = None,
    tasks: Annotated[str, typer.Option(help="Some tasks of the suite, by commas (default: all).")] = "",
    set_: console.Settings = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Take submissions that leave out whole tasks.")
    ] = False,
    title: Title = None,
    about: About = None,
    quota_day: Day = None,
    quota_month: Month = None,
    rounding: Rounding = None,
) -> None:
    """Make a board of a suite or a board.toml; the labels are copied and stay private."""
    wanted: dict[str, Any] = {"name": name, "suite": suite, "split": split, "partial": partial}
    wanted |= {"labels": str(labels.absolute()), "settings": console.parse_settings(set_)}
    wanted["tasks"] = [task.strip() for task in tasks.split(",") if task.strip()]
    if board is not None:
        wanted["toml"] = _read(board)
    more = {"title": title, "about": about, "quota_day": quota_day, "quota_month": quota_month}
    wanted |= {key: value for key, value in {**more, "rounding": rounding}.items() if value is not None}
    made = platform.perform("board.create", wanted)
    quota = f"{made['quota_day']} a day and {made['quota_month']} a month"
    platform.answer(made, f"{name} takes submissions, {quota} from each user.")


@command_of(app, "list")
def list_boards(platform: Platform) -> None:
    """List the boards."""
    found = platform.perform("board.list", {})["boards"]
    if platform.json:
        console.print_json(found)
        return
    for one in found:
        state = "open" if one["is_open"] else "closed" if one["labels_version"] else "no labels"
        print(f"{one['name']:<24} {state:<10} {one['suite'] or 'own':<14} {one['split']:<6} {one['title']}")


@command_of(app, "open")
def open_board(platform: Platform, name: Name) -> None:
    """Open a board for submissions."""
    made = platform.perform("board.change", {"name": name, "is_open": True})
    platform.answer(made, f"{name} is open.")


@command_of(app)
def close(platform: Platform, name: Name) -> None:
    """Close a board to submissions; its entries stay."""
    made = platform.perform("board.change", {"name": name, "is_open": False})
    platform.answer(made, f"{name} is closed.")


@command_of(app)
def change(
    platform: Platform,
    name: Name,
    title: Title = None,
    about: About = None,
    quota_day: Day = None,
    quota_month: Month = None,
    rounding: Rounding = None,
    listed: Annotated[bool | None, typer.Option("--listed/--unlisted", help="Whether it is listed.")] = None,
) -> None:
    """Change a board's title, description, quotas or rounding."""
    values = {"title": title, "about": about, "quota_day": quota_day, "quota_month": quota_month}
    made = platform.perform(
        "board.change", {"name": name, **values, "rounding": rounding, "is_listed": listed}
    )
    platform.answer(made, f"{name} is changed.")


@command_of(app)
def labels(
    platform: Platform,
    name: Name,
    folder: Annotated[Path, typer.Argument(help="The folder with the data and their private labels.")],
) -> None:
    """Give a board its first or other labels; every standing submission is graded again."""
    done = platform.perform("board.labels", {"name": name, "labels": str(folder.absolute())})
    words = f"{name} has labels of version {done['labels_version']}; {done['regraded']} submissions are graded again."
    platform.answer(done, words)


@command_of(app)
def regrade(platform: Platform, name: Name) -> None:
    """Grade everything on a board again, with the labels it has."""
    done = platform.perform("board.regrade", {"name": name})
    platform.answer(done, f"{done['regraded']} submissions to {name} are graded again.")


@command_of(app, "import-baselines")
def import_baselines(
    platform: Platform,
    name: Name,
    file: Annotated[
        Path | None, typer.Argument(help="A file like published.toml (default: what is known of the suite).")
    ] = None,
) -> None:
    """Put published, measured and human baselines on a board, marked as such."""
    words = None if file is None else _read(file)
    done = platform.perform("board.import-baselines", {"name": name, "toml": words})
    platform.answer(done, f"{name} shows {done['baselines']} baselines.")


@command_of(app)
def export(
    platform: Platform,
    name: Name,
    folder: Annotated[Path, typer.Argument(help="The folder to write, which must not be there.")],
) -> None:
    """Write everything of a board but its labels: submissions with every grading, and their files."""
    done = platform.perform("board.export", {"name": name, "folder": str(folder.absolute())})
    platform.answer(done, f"{folder}: {done['submissions']} submissions and {done['uploads']} files.")


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise EnsueError(f"{path} cannot be read: {why}.") from None
