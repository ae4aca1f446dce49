"""Groups of commands that benchmarks add to, each imported when it is asked for."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from ensue import lazy


class Commands(TyperGroup):
    """The commands of the house and those of all benchmarks, functions named as `module:object`."""

    def references(self) -> dict[str, str]:
        """Return the functions by the names of their commands."""
        from ensue.benchmarks import registry

        return {name: where for one in registry.every() for name, where in one.commands.items()}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *self.references()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in (references := self.references()):
            return found
        function = lazy.load(references[cmd_name])
        if isinstance(function, typer.Typer):
            return typer.main.get_command(function)
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command(cmd_name)(function)
        return typer.main.get_command(app)


class Builders(Commands):
    """The builders of all benchmarks."""

    def references(self) -> dict[str, str]:
        from ensue.benchmarks import registry

        return {name: builder.command for one in registry.every() for name, builder in one.builders.items()}


build = typer.Typer(
    cls=Builders, help="Build benchmark data from raw works.", no_args_is_help=True, rich_markup_mode=None
)


@build.callback()
def root() -> None:
    """Build benchmark data from raw works."""
