"""The `ensue` command; each subcommand imports what it needs when it runs."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from typing import Annotated, Any

import typer

from ensue.cli.groups import Commands
from ensue.errors import EnsueError, RunFailed

# The commands of the house: where each is, and what the list of commands says of it.
HOUSE = {
    "run": ("ensue.cli.run:run", "Run a benchmark with a model and write a run folder."),
    "plan": ("ensue.cli.plan:plan", "Say what a run will cost before it starts."),
    "score": ("ensue.cli.score:score", "Score texts: log-likelihoods in nats, in input order."),
    "calibrate": ("ensue.cli.calibrate:calibrate", "Fit the verdict of `score --profile` on sound texts."),
    "compare": ("ensue.cli.compare:compare", "Compare two runs by a paired test over whole clusters."),
    "report": ("ensue.cli.report:report", "Write one self-contained HTML report of a run."),
    "submit": ("ensue.cli.submit:submit", "Write a run's predictions as a submission; send it to a board."),
    "grade": ("ensue.cli.grade:grade", "Validate a submission and score it."),
    "serve": ("ensue.cli.serve:serve", "Serve boards, accounts and submissions."),
    "backup": ("ensue.cli.serve:backup", "Back up a platform to one file, also while it is served."),
    "restore": ("ensue.cli.serve:restore", "Restore a backup into a new home."),
    "worker": ("ensue.cli.worker:worker", "Answer with a model what visitors of a server try."),
    "annotate": ("ensue.cli.annotate:app", "Measure people: annotation projects."),
    "board": ("ensue.cli.board:app", "Make and keep boards."),
    "build": ("ensue.cli.groups:build", "Build benchmark data from raw works."),
    "models": ("ensue.cli.models:app", "List, fetch and inspect models."),
    "train": ("ensue.cli.train:app", "Train models of your own."),
    "user": ("ensue.cli.user:app", "Add, change and invite users."),
}


class _House(Commands):
    """The commands of the house and those of all benchmarks, each imported when it is asked for."""

    def references(self) -> dict[str, str]:
        own = {name: where for name, (where, _) in HOUSE.items()}
        # A package's command does not take the place of one of these.
        return own | super().references() | own

    def about(self, ctx: Any, name: str) -> str:
        return HOUSE[name][1] if name in HOUSE else super().about(ctx, name)


app = typer.Typer(
    name="ensue",
    cls=_House,
    help="Does the text follow? Measure whether language models follow text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
