"""`ensue report`: a run, or a training, as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli import common


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="A run or training folder; ChapterBreak runs beside it."),
    ],
    output: Annotated[Path | None, typer.Option(help="Where to write it (default: RUN/report.html).")] = None,
    annotations: Annotated[
        Path | None, typer.Option(help="Annotated chapter transitions, CSV or JSON lines.")
    ] = None,
    json: common.Json = False,
) -> None:
    """Write one self-contained HTML report of a run."""
    from ensue.report.html import write_report

    page = write_report(runs[0], output, beside=runs[1:], annotations=annotations)
    if json:
        common.print_json({"report": str(page)})
    else:
        print(page)
