"""`ensue grade`: a submission to any benchmark, checked and scored as a server does it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console


def grade(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A submission: a zip (GLUE, SuperGLUE) or predictions, one JSON object a line.",
        ),
    ],
    labels: Annotated[Path, typer.Option(help="The data folder that a run reads, with labels.")],
    suite: Annotated[
        str | None, typer.Option(help="The benchmark, or a board.toml (default: by the files of a zip).")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="The split that is answered: dev or test (default: test).")
    ] = None,
    tasks: Annotated[str, typer.Option(help="Grade these tasks only, by commas; their files suffice.")] = "",
    settings: console.Settings = None,
    json: console.Json = False,
) -> None:
    """Validate a submission and score it.

    A bad one is refused with everything that is wrong.
    """
    from ensue.benchmarks.grading import Refused, grader_of
    from ensue.benchmarks.grading import grade as graded

    chosen = [task.strip() for task in tasks.split(",") if task.strip()]
    try:
        done = graded(
            file, labels, suite, split=split, tasks=chosen, settings=console.parse_settings(settings)
        )
    except Refused as refused:
        if json:
            problems = [problem._asdict() for problem in refused.problems]
            console.print_json({"file": str(file), "refused": refused.count, "problems": problems})
        raise
    if json:
        console.print_json({"file": str(file), **done.as_dict()})
        return
    console.print_tables(grader_of(suite or done.suite).tables(done, f"{file.name} on {done.split}", chosen))
    for note in done.notes:
        print(note)
    for name, why in done.not_scored.items():
        print(f"not scored: {name} ({why})")
