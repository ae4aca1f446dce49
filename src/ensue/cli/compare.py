"""`ensue compare`: two runs, paired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to compare it with.")],
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="Match items by their texts and labels, and leave out what only one run has."
        ),
    ] = False,
    json: console.Json = False,
) -> None:
    """Compare two runs by a paired test over whole clusters.

    Each task's own metrics: both values, the difference with its interval, and the p-value.
    """
    from ensue.runs.compare import compare_runs

    found = compare_runs(run_a, run_b, shared=shared)
    if json:
        console.print_json(found.as_dict())
        return
    from rich.console import Console

    from ensue.report.table import comparison_table, untested_words

    Console().print(comparison_table(found))
    for words in untested_words(found):
        print(words)
    for note in found.notes:
        print(note)
