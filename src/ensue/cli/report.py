"""`ensue report`: a run, or a training, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console


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
    json: console.Json = False,
) -> None:
    """Write one self-contained HTML report of a run."""
    if annotation_sheet is not None:
        _write_sheet(runs[0], annotation_sheet, json)
        return
    from ensue.report.html import write_report

    page = write_report(runs[0], output, beside=runs[1:], annotations=annotations)
    if json:
        console.print_json({"report": str(page)})
    else:
        print(page)


def _write_sheet(run: Path, sheet: Path, json: bool) -> None:
    from ensue.benchmarks.chapterbreak.annotation import run_examples, write_sheet
    from ensue.errors import EnsueError
    from ensue.report.reading import read_items

    examples = run_examples(read_items(run))
    if not examples:
        raise EnsueError(f"{run} has no chapter breaks to annotate.")
    rows = write_sheet(examples, sheet)
    if json:
        console.print_json({"sheet": str(sheet), "rows": rows})
    else:
        print(f"{sheet}: {rows} transitions to annotate")
