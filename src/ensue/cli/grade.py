"""`ensue grade`: a submission, or the labels people gave, checked and scored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console


def grade(
    archive: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A submission (.zip), or several people's labels of a task (.jsonl)."
        ),
    ],
    labels: Annotated[Path, typer.Option(help="Folder in the official layout, with labels.")],
    suite: Annotated[str | None, typer.Option(help="glue or superglue (default: by the files).")] = None,
    split: Annotated[str, typer.Option(help="The split that is answered: dev or test.")] = "test",
    tasks: Annotated[str, typer.Option(help="Grade these tasks only, by commas; their files suffice.")] = "",
    json: console.Json = False,
) -> None:
    """Validate a submission and score it.

    A bad one is refused with everything that is wrong.
    """
    from ensue.benchmarks.nlu.submissions.grading import Refused
    from ensue.benchmarks.nlu.submissions.grading import grade as graded

    chosen = [task.strip() for task in tasks.split(",") if task.strip()]
    if archive.suffix == ".jsonl":
        _people(archive, labels, suite, split, chosen, json)
        return
    try:
        done = graded(archive, labels, suite, split=split, tasks=chosen)
    except Refused as refused:
        if json:
            problems = [problem._asdict() for problem in refused.problems]
            console.print_json({"archive": str(archive), "refused": refused.count, "problems": problems})
        raise
    if json:
        console.print_json(done.as_dict())
        return
    from rich.console import Console

    from ensue.report.table import metrics_table, phenomena_tables

    # Named as a run of these tasks is, so that the rest is not missed.
    asked = "/".join(filter(None, (done.suite, ",".join(chosen))))
    results = {"benchmark": asked, "model": f"{archive.name} on {split}", "metrics": done.metrics}
    screen = Console()
    for table in (metrics_table(results), *phenomena_tables(results)):
        screen.print(table)
    for note in done.notes:
        print(note)
    for file, why in done.not_scored.items():
        print(f"not scored: {file} ({why})")


def _people(path: Path, labels: Path, suite: str | None, split: str, tasks: list[str], json: bool) -> None:
    """The majority vote of an annotation file, judged as a system's answers are, and how far people agree."""
    from ensue.benchmarks.nlu.human import judge_people
    from ensue.benchmarks.nlu.scores import rows
    from ensue.benchmarks.nlu.submissions.grading import read_labels
    from ensue.errors import EnsueError

    if suite is None or len(tasks) != 1:
        raise EnsueError(f"{path} holds labels of one task; say which, as in --suite superglue --tasks CB.")
    found = read_labels(labels, suite, tasks)
    if not found:
        raise EnsueError(f"{labels} has no files of {tasks[0]}; name the folder that holds its labels.")
    ((_, data),) = found.items()
    people = judge_people(path, data, split)
    agreement = people.agreement_row()
    judged = [row for row in rows([people.judged]) if row["metric"] != "score"] if people.judged else []
    metrics = [*judged, *([agreement] if agreement else [])]
    if not metrics:
        raise EnsueError(
            f"{path}: {data.spec.name} has no labels of {split} in {labels} to judge people by, and where all say "
            f"the same there is no agreement to measure; give labels."
        )
    if json:
        console.print_json({"suite": suite, "task": data.spec.name, "metrics": metrics})
        return
    for row in metrics:
        low, high = row["ci95"]
        interval = "" if low is None or high is None else f"  [{low:.3f}, {high:.3f}]"
        print(f"{row['task']}  {row['metric']:<9} {row['value']:.3f}{interval}  n {row['n']:,}  {split}")
