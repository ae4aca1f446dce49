"""`ensue compare`: two runs, paired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli import common


def compare(
    run_a: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    run_b: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder to compare it with.")],
    json: common.Json = False,
) -> None:
    """Compare two runs item by item: difference, interval and p-value, clustered by document."""
    from ensue.runs.compare import compare_runs

    found = compare_runs(run_a, run_b)
    if json:
        common.print_json(found.as_dict())
        return
    from rich.console import Console

    from ensue.report.table import comparison_table

    Console().print(comparison_table(found))
    for note in found.notes:
        print(note)
