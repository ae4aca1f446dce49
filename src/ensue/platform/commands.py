"""Commands that change a platform from the command line; the server performs them while it has the home open.

Each is a function of the platform and its arguments, both ways in JSON, so that it can be handed over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ensue.platform.annotation.commands import ANNOTATION_COMMANDS
from ensue.platform.backup import check, write_backup
from ensue.platform.boards.commands import BOARD_COMMANDS
from ensue.platform.service import Command, Platform


def add_user(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Add a user with an API token, and a password where one is given."""
    accounts = platform.accounts
    user = accounts.add(arguments["email"], arguments["role"], password=arguments.get("password"))
    return {"id": user.id, "token": accounts.add_token(user.id, "from the command line")}


def change_user(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Give a user another role or password, whichever is given."""
    user = platform.accounts.find_email(arguments["email"])
    if arguments.get("role") is not None:
        platform.accounts.set_role(user.id, arguments["role"])
    if arguments.get("password") is not None:
        platform.accounts.set_password(user.id, arguments["password"])
    return {"id": user.id, "role": platform.accounts.find(user.id).role}


def invite_user(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Make an invitation."""
    secret = platform.accounts.invitations.make(arguments["role"], email=arguments.get("email") or "")
    return {"path": f"/invitations/{secret}", "role": arguments["role"]}


def back_up(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Write a backup to a path of this machine."""
    return write_backup(platform, Path(arguments["path"]))


def check_home(platform: Platform, arguments: dict[str, Any]) -> dict[str, Any]:
    """Say what is wrong with the home and its database."""
    return {"problems": check(platform), "database": str(platform.database)}


COMMANDS: dict[str, Command] = {
    **ANNOTATION_COMMANDS,
    **BOARD_COMMANDS,
    "user.add": add_user,
    "user.change": change_user,
    "user.invite": invite_user,
    "backup": back_up,
    "check": check_home,
}
