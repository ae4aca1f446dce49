"""`ensue user`: add, change and invite users from the command line, also while the platform is served."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue import console
from ensue.cli.serve import DatabaseUrl, Folder, perform
from ensue.errors import EnsueError

Email = Annotated[str, typer.Argument(help="E-mail address.")]

app = typer.Typer(help="Add, change and invite users.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Add, change and invite users."""


@app.command()
def add(
    email: Email,
    role: Annotated[str, typer.Option(help="participant, annotator, organiser or admin.")] = "participant",
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password to sign in with on the pages.")
    ] = False,
    home: Folder = None,
    database: DatabaseUrl = None,
    json: console.Json = False,
) -> None:
    """Add a user and print an API token, which is shown this once."""
    word = _asked() if password else None
    made = perform(home, database, "user.add", {"email": email, "role": role, "password": word})
    if json:
        console.print_json(made)
        return
    print(f"{email} is {role}, with the API token {made['token']}")
    console.say("The token is not shown again.")


@app.command()
def change(
    email: Email,
    role: Annotated[str | None, typer.Option(help="participant, annotator, organiser or admin.")] = None,
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a new password; all the user's sessions end.")
    ] = False,
    home: Folder = None,
    database: DatabaseUrl = None,
    json: console.Json = False,
) -> None:
    """Change a user's role, or the password of one who forgot it."""
    if role is None and not password:
        raise EnsueError("Nothing to change: give --role or --password.")
    word = _asked() if password else None
    changed = perform(home, database, "user.change", {"email": email, "role": role, "password": word})
    if json:
        console.print_json(changed)
    console.say(f"{email} is {changed['role']}{', with a new password' if password else ''}.")


@app.command()
def invite(
    role: Annotated[str, typer.Argument(help="participant, annotator, organiser or admin.")],
    email: Annotated[str, typer.Option(help="The only address that may use it.")] = "",
    home: Folder = None,
    database: DatabaseUrl = None,
    json: console.Json = False,
) -> None:
    """Make an invitation and print the path of its page, which can be used once."""
    made = perform(home, database, "user.invite", {"role": role, "email": email})
    if json:
        console.print_json(made)
        return
    print(made["path"])
    console.say("Put the server's address before it. It is not shown again.")


def _asked() -> str:
    """Ask for a password, twice."""
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
