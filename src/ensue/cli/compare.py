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
    agreement: Annotated[
        bool,
        typer.Option(
            "--agreement",
            help="Also show how many items both runs score the same, as between two precisions.",
        ),
    ] = False,
    form: console.Format = "table",
    json: console.Json = False,
) -> None:
    """Compare two runs by a paired test over whole clusters.

    Each task's own metrics: both values, the difference with its interval, and the p-value.
    """
    from ensue.report.table import check_format
    from ensue.runs.compare import compare_runs

    check_format(form)
    found = compare_runs(run_a, run_b, shared=shared)
    if json:
        console.print_json(found.as_dict())
        return
    from ensue.runs.pairing import by_reason
    from ensue.runs.tables import agreement_table, comparison_table

    tables = [comparison_table(found), *([agreement_table(found)] if agreement else [])]
    console.print_tables(tables, form)
    # Beside a table that is a file by itself, words go where people read them.
    show = print if form == "table" else console.say
    for words in [*(f"Not tested: {one}." for one in by_reason(found.untested)), *found.notes]:
        show(words)
