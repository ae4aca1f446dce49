"""Groups of commands that benchmarks add to, each imported when it is asked for."""

from __future__ import annotations

import difflib
from typing import Any

import typer
from typer.core import TyperGroup

from ensue import lazy


class Commands(TyperGroup):
    """Commands that are functions or groups named as `module:object`: those of all benchmarks."""

    def references(self) -> dict[str, str]:
        """Return the functions by the names of their commands."""
        from ensue.benchmarks import registry

        return {name: where for one in registry.every() for name, where in one.commands.items()}

    def load(self, reference: str) -> Any:
        """Import the function, or group, that a reference names."""
        return lazy.load(reference)

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *self.references()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is not None or cmd_name not in (references := self.references()):
            return found
        function = self.load(references[cmd_name])
        if isinstance(function, typer.Typer):
            function._add_completion = False  # a group within another has none of its own
            group = typer.main.get_command(function)
            group.name = cmd_name
            return group
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        app.command(cmd_name)(function)
        return typer.main.get_command(app)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that is asked for; name the nearest where there is none."""
        if args and args[0] not in (known := self.list_commands(ctx)) and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], known, n=1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def about(self, ctx: Any, name: str) -> str:
        """Return what the list of commands says of one."""
        return str(self.get_command(ctx, name).get_short_help_str(limit=80))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing what already said what it is."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.about(ctx, name)) for name in self.list_commands(ctx)])


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
