"""`ensue user`: add, change and invite users from the command line, also while the platform is served."""

from __future__ import annotations

from typing import Annotated

import typer

from ensue import console
from ensue.cli.serve import Platform, command_of
from ensue.errors import EnsueError

Email = Annotated[str, typer.Argument(help="E-mail address.")]

app = typer.Typer(help="Add, change and invite users.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def root() -> None:
    """Add, change and invite users."""


@command_of(app)
def add(
    platform: Platform,
    email: Email,
    role: Annotated[str, typer.Option(help="participant, annotator, organiser or admin.")] = "participant",
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a password to sign in with on the pages.")
    ] = False,
) -> None:
    """Add a user and print an API token, which is shown this once."""
    word = _asked() if password else None
    made = platform.perform("user.add", {"email": email, "role": role, "password": word})
    if platform.json:
        console.print_json(made)
        return
    print(f"{email} is {role}, with the API token {made['token']}")
    console.say("The token is not shown again.")


@command_of(app)
def change(
    platform: Platform,
    email: Email,
    role: Annotated[str | None, typer.Option(help="participant, annotator, organiser or admin.")] = None,
    password: Annotated[
        bool, typer.Option("--password", help="Ask for a new password; all the user's sessions end.")
    ] = False,
) -> None:
    """Change a user's role, or the password of one who forgot it."""
    if role is None and not password:
        raise EnsueError("Nothing to change: give --role or --password.")
    word = _asked() if password else None
    changed = platform.perform("user.change", {"email": email, "role": role, "password": word})
    if platform.json:
        console.print_json(changed)
    console.say(f"{email} is {changed['role']}{', with a new password' if password else ''}.")


@command_of(app)
def invite(
    platform: Platform,
    role: Annotated[str, typer.Argument(help="participant, annotator, organiser or admin.")],
    email: Annotated[str, typer.Option(help="The only address that may use it.")] = "",
) -> None:
    """Make an invitation and print the path of its page, which can be used once."""
    made = platform.perform("user.invite", {"role": role, "email": email})
    if platform.json:
        console.print_json(made)
        return
    print(made["path"])
    console.say("Put the server's address before it. It is not shown again.")


def _asked() -> str:
    """Ask for a password, twice."""
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
