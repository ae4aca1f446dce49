"""`ensue grade`: a submission checked and scored against labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue.cli import common


def grade(
    archive: Annotated[Path, typer.Argument(metavar="ZIP", help="A submission.")],
    labels: Annotated[Path, typer.Option(help="Folder in the official layout, with labels.")],
    suite: Annotated[str | None, typer.Option(help="glue or superglue (default: by the files).")] = None,
    split: Annotated[str, typer.Option(help="The split that is answered: dev or test.")] = "test",
    tasks: Annotated[str, typer.Option(help="Grade these tasks only, by commas; their files suffice.")] = "",
    json: common.Json = False,
) -> None:
    """Validate a submission and score it; a bad one is refused with everything that is wrong."""
    from ensue.benchmarks.nlu.grading import Refused
    from ensue.benchmarks.nlu.grading import grade as graded

    chosen = [task.strip() for task in tasks.split(",") if task.strip()]
    try:
        done = graded(archive, labels, suite, split=split, tasks=chosen)
    except Refused as refused:
        if json:
            problems = [problem._asdict() for problem in refused.problems]
            common.print_json({"archive": str(archive), "refused": refused.count, "problems": problems})
        raise
    if json:
        common.print_json(done.as_dict())
        return
    from rich.console import Console

    from ensue.report.table import metrics_table

    results = {"benchmark": done.suite, "model": f"{archive.name} on {split}", "metrics": done.metrics}
    Console().print(metrics_table(results))
    for note in done.notes:
        print(note)
    for file, why in done.not_scored.items():
        print(f"not scored: {file} ({why})")
