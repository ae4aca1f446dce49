"""`ensue train`: a command for every trainer, made from the dataclass of its options."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import MISSING, asdict, fields
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import typer

from ensue import console, lazy
from ensue.cli.groups import Commands
from ensue.train import TRAINERS
from ensue.train.options import TrainingOptions, hints_of, start

if TYPE_CHECKING:
    from ensue.train.loop import Fitted

_KEPT = "the last checkpoint is kept: run the same command with --resume to go on"


class _Trainers(Commands):
    """The trainers of the table, each loaded when it is asked for."""

    def references(self) -> dict[str, str]:
        return dict(TRAINERS)

    def load(self, reference: str) -> Any:
        return make_command(lazy.load(reference))


app = typer.Typer(
    cls=_Trainers,
    no_args_is_help=True,
    help=f"Train models: {', '.join(TRAINERS)}.",
    rich_markup_mode=None,
)


@app.callback()
def group() -> None:
    pass


def make_command(options: type[TrainingOptions]) -> Callable[..., None]:
    """Return a function with an argument for every option, as typer reads them; it trains and says how it ended."""

    def command(json: bool, **given: Any) -> None:
        chosen = options(**given)
        with console.stoppable(_KEPT), console.progress_bar(chosen.title) as progress:
            fitted = start(chosen, progress)
        # Of several processes one speaks.
        if os.environ.get("RANK", "0") == "0":
            _report(chosen, fitted, json)

    defaults = {field.name: field.default for field in fields(options)}
    hints = {**hints_of(options), "json": console.Json}
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if defaults.get(name, False) is MISSING else defaults.get(name, False),
            annotation=hint,
        )
        for name, hint in hints.items()
    ]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = dict(hints)
    command.__doc__ = options.__doc__
    return command


def _report(options: TrainingOptions, fitted: Fitted, json: bool) -> None:
    """Say how a training ended."""
    if json:
        console.print_json({**asdict(fitted), "folder": str(options.output)})
        return
    early = " (stopped early)" if fitted.stopped_early else ""
    figures = ", ".join(f"{figure.replace('_', ' ')} {value:.4f}" for figure, value in fitted.best.items())
    print(f"{options.title}: {fitted.steps} steps{early} in {fitted.seconds:.0f} s.")
    if remark := options.remark():
        print(remark)
    print(f"best at step {fitted.best_step}: {figures}")
    print(f"model folder: {options.output}")
