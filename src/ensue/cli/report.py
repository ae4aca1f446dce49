"""`ensue report`: a run, or a training, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console
from ensue.errors import EnsueError


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="A run or training folder; other runs to set beside it."),
    ],
    output: Annotated[Path | None, typer.Option(help="Where to write it (default: RUN/report.html).")] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="Annotated chapter transitions, CSV or JSON lines.")
    ] = None,
    annotation_sheet: Annotated[
        Path | None,
        typer.Option(help="Write an empty sheet to annotate the first run's transitions in, no report."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--format", help="Print the tables instead of a page: table, markdown, csv or latex."),
    ] = None,
    json: console.Json = False,
) -> None:
    """Write one self-contained HTML report of a run."""
    if annotation_sheet is not None:
        from ensue.runs.report import write_annotation_sheet

        rows = write_annotation_sheet(runs[0], annotation_sheet)
        words = f"{annotation_sheet}: {rows} transitions to annotate"
        console.print_answer({"sheet": str(annotation_sheet), "rows": rows}, json, words)
        return
    if form is not None:
        _print_tables(runs, form, output, json)
        return
    from ensue.runs.report import write_report

    page = write_report(runs[0], output, beside=runs[1:], annotations=annotations)
    console.print_answer({"report": str(page)}, json, str(page))


def _print_tables(runs: list[Path], form: str, output: Path | None, json: bool) -> None:
    """Print the tables of runs, or write them to a file."""
    from ensue.atomic import write_atomic
    from ensue.report.results import read_results
    from ensue.report.table import check_format, render
    from ensue.runs.tables import metrics_tables

    check_format(form)
    if json and output is None:
        raise EnsueError("--format prints tables, which are not JSON: leave out --json, or give --output.")
    tables = [table for run in runs for table in metrics_tables(read_results(run), run)]
    if output is None:
        console.print_tables(tables, form)
    elif form == "table":
        raise EnsueError("--format table is for the terminal; a file takes markdown, csv or latex.")
    else:
        written = write_atomic(output, [render(tables, form)])
        console.print_answer({"tables": str(written)}, json, str(written))
