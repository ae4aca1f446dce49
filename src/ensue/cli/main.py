"""The `ensue` command; each subcommand imports what it needs when it runs."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Annotated

import typer

from ensue.cli.annotate import app as annotate
from ensue.cli.board import app as boards
from ensue.cli.calibrate import calibrate
from ensue.cli.compare import compare
from ensue.cli.grade import grade
from ensue.cli.groups import Commands, build
from ensue.cli.models import app as models
from ensue.cli.report import report
from ensue.cli.run import run
from ensue.cli.score import score
from ensue.cli.serve import backup, restore, serve
from ensue.cli.submit import submit
from ensue.cli.train import app as train
from ensue.cli.user import app as users
from ensue.cli.worker import worker
from ensue.errors import EnsueError, RunFailed

app = typer.Typer(
    name="ensue",
    cls=Commands,
    help="Does the text follow? Measure whether language models follow text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(run)
app.command()(score)
app.command()(calibrate)
app.command()(compare)
app.command()(report)
app.command()(submit)
app.command()(grade)
app.command()(serve)
app.command()(backup)
app.command()(restore)
app.command()(worker)
app.add_typer(annotate, name="annotate")
app.add_typer(boards, name="board")
app.add_typer(build, name="build")
app.add_typer(models, name="models")
app.add_typer(train, name="train")
app.add_typer(users, name="user")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False,
) -> None:
    if version:
        from ensue import __version__

        print(f"ensue {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what a user did wrong is one sentence and exit code 2."""
    try:
        try:
            app()
        finally:
            # Here, where a failure can be told of in a sentence; at exit it could not.
            sys.stdout.flush()
    except EnsueError as error:
        print(f"ensue: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, RunFailed) else 2)
    except OSError as error:
        # What is still unwritten has nowhere to go and must not fail again at exit.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:  # the reader went away (`| head`)
            sys.exit(1)
        print(f"ensue: {error.filename or 'The output'} cannot be used: {error.strerror}.", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":  # for `torchrun -m ensue.cli.main`
    main()
