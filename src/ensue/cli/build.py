"""`ensue build`: benchmark data made from raw works; the benchmarks bring the commands."""

from __future__ import annotations

import typer

from ensue.cli.groups import LazyGroup


class Builders(LazyGroup):
    """The builders of all benchmarks."""

    def references(self) -> dict[str, str]:
        from ensue.benchmarks import registry

        return {name: builder.command for one in registry.every() for name, builder in one.builders.items()}


app = typer.Typer(
    cls=Builders, help="Build benchmark data from raw works.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def root() -> None:
    """Build benchmark data from raw works."""
