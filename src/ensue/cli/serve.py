"""`ensue serve`, `ensue backup`, `ensue restore`: the platform from the command line."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ensue import console
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.platform.service import Settings

Folder = Annotated[
    Path | None,
    typer.Option("--home", help="The platform's folder (default: ~/.local/share/ensue)."),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="ENSUE_DATABASE",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME (default: a file in the home).",
    ),
]


def settings(home: Path | None, database: str | None, **more: object) -> Settings:
    """Return the settings of a platform; say what to install where its libraries are missing."""
    try:
        from ensue.platform.service import Settings, default_home
    except ImportError as error:
        raise EnsueError(f"The platform needs {error.name}: pip install 'ensue[platform]'.") from None
    return Settings(home=home or default_home(), database=database, **more)  # type: ignore[arg-type]


class Platform(NamedTuple):
    """The platform that a command is about, and whether its answers are printed as JSON."""

    home: Path | None
    database: str | None
    json: bool

    def perform(self, command: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a command says, by the platform's server where one runs."""
        given = settings(self.home, self.database)
        from ensue.platform import service

        return service.perform(given, command, dict(arguments))

    def answer(self, answer: Any, words: str) -> None:
        """Print what a command did, as JSON or in words."""
        console.print_answer(answer, self.json, words)


def takes_platform(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command's options those that say which platform it is about; it gets that as `platform`."""
    more = {"home": (Folder, None), "database": (DatabaseUrl, None), "json": (console.Json, False)}

    @wraps(command)
    def with_platform(**given: Any) -> None:
        platform = Platform(*(given.pop(option) for option in more))
        command(**given, platform=platform)

    return console.with_parameters(command, with_platform, "platform", more)


def command_of(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Any]:
    """Add a command about a platform to a group."""
    return lambda function: app.command(name)(takes_platform(function))


def serve(
    home: Folder = None,
    database: DatabaseUrl = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    public_url: Annotated[str, typer.Option(help="The server's public URL, if it runs behind a proxy.")] = "",
    sign_up: Annotated[
        bool, typer.Option("--sign-up/--no-sign-up", help="Whether anybody may make an account.")
    ] = True,
    check: Annotated[
        bool, typer.Option("--check", help="Only look whether the home and its database are whole.")
    ] = False,
    json: console.Json = False,
) -> None:
    """Serve boards, accounts and submissions."""
    with _starting():
        given = settings(home, database, public_url=public_url, open_sign_up=sign_up)
        if check:
            _check(given, json)
            return
        from ensue.platform.web.server import serve as run_server

        def ready(url: str) -> None:
            if json:
                console.print_json({"url": url, "home": str(given.home)})
            console.say(f"Ensue serves {given.home} at {url} (Ctrl-C stops it).")

        run_server(given, host, port, ready)


@contextmanager
def _starting() -> Iterator[None]:
    """Look for no garbage in what is imported, which takes a tenth of the start; the server looks again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _check(given: Settings, json: bool) -> None:
    """Print what is wrong with a home; exit code 1 where something is."""
    from ensue.platform.service import perform

    found = perform(given, "check", {})
    if json:
        console.print_json(found)
    for problem in found["problems"]:
        console.say(problem)
    if found["problems"]:
        raise typer.Exit(1)
    console.say(f"{given.home} and {found['database']} are whole.")


@takes_platform
def backup(
    platform: Platform, path: Annotated[Path, typer.Argument(help="The file to write, .tar or .tar.gz.")]
) -> None:
    """Back up a platform to one file, also while it is served."""
    made = platform.perform("backup", {"path": str(path.absolute())})
    if platform.json:
        console.print_json(made)
    rows = sum(made["rows"].values())
    console.say(f"{path}: {rows:,} rows and {made['uploads']:,} uploads, {made['bytes']:,} bytes.")


@takes_platform
def restore(
    platform: Platform, path: Annotated[Path, typer.Argument(help="A file that `ensue backup` wrote.")]
) -> None:
    """Restore a backup into a new home."""
    given = settings(platform.home, platform.database)
    from ensue.platform import backup as backups

    done = backups.restore(given, path)
    if platform.json:
        console.print_json(done)
    console.say(f"{done['home']} is as it was at {done['at']}: {sum(done['rows'].values()):,} rows.")
