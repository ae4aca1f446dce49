"""Groups of commands that are imported when they are asked for."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from ensue import lazy


class LazyGroup(TyperGroup):
    """A group with further commands, each a function named as `module:object`; a subclass says which."""

    def references(self) -> dict[str, str]:
        """Return the functions by the names of their commands."""
        return {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *self.references()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in (references := self.references()):
            return found
        return as_command(lazy.load(references[cmd_name]), cmd_name)


def as_command(function: Any, name: str) -> Any:
    """Make a command of a function, or of an app of several."""
    if isinstance(function, typer.Typer):
        return typer.main.get_command(function)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name)(function)
    return typer.main.get_command(app)
