"""`ensue report`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli import common


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    output: Annotated[Path | None, typer.Option(help="Where to write it (default: RUN/report.html).")] = None,
    json: common.Json = False,
) -> None:
    """Write one self-contained HTML report of a run."""
    from ensue.report.html import write_report

    page = write_report(run, output)
    if json:
        common.print_json({"report": str(page)})
    else:
        print(page)
