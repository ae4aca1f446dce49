"""`ensue submit` and `ensue grade`: a run's predictions as the zip of the official sites, and such a zip scored."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue import console
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.nlu.submissions.submission import Predictions


def submit(
    suite: Annotated[str, typer.Argument(help="glue or superglue.")],
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    output: Annotated[
        Path | None, typer.Option(help="The zip to write (default: SUITE-SPLIT.zip in the run folder).")
    ] = None,
    split: Annotated[str, typer.Option(help="test, or dev to try out the grading.")] = "test",
    settings: console.Settings = None,
    fill_missing: Annotated[
        bool,
        typer.Option("--fill-missing", help="Answer tasks the run left out with their most frequent label."),
    ] = False,
    data: Annotated[
        str | None, typer.Option(help="Folder the missing tasks are read from (default: the run's own).")
    ] = None,
    json: console.Json = False,
) -> None:
    """Write the predictions of a run as a submission.

    Where a run answered in several ways, --set picks one (as in --set template=question).
    """
    from ensue.benchmarks.nlu.examples import DEV, TEST
    from ensue.benchmarks.nlu.submissions.formats import files_of
    from ensue.benchmarks.nlu.submissions.submission import collect, write_submission
    from ensue.benchmarks.nlu.suites import specs_of
    from ensue.report.results import ITEMS_FILE, read_numbered_items, read_results

    if split not in (TEST, DEV):
        raise EnsueError(f"--split {split} is none of {TEST}, {DEV}.")
    specs = specs_of(suite)
    read_results(run)  # an unfinished run has no predictions to be sure of
    items, chosen = read_numbered_items(run), console.parse_settings(settings)
    predictions = collect(items, run / ITEMS_FILE, suite, split, chosen)
    filled: list[str] = []
    if fill_missing:
        answers = _most_frequent(suite, Path(data) if data else _data_of(run))
        for spec in specs:
            for file, part in files_of(spec, split).items():
                found = answers.get(spec.name, {}).get(part)
                if found and part not in predictions.get(spec.name, {}):
                    predictions.setdefault(spec.name, {})[part] = found
                    filled.append(file)
    done = write_submission(suite, predictions, output or run / f"{suite}-{split}.zip", split)
    if json:
        console.print_json({**done.as_dict(), "filled": filled})
        return
    for file, rows in done.files.items():
        print(f"{file}: {rows:,}" + (" (most frequent label)" if file in filled else ""))
    for note in done.notes:
        print(note)
    if done.missing:
        how = "no data for them either" if fill_missing else "--fill-missing adds the most frequent label"
        print(f"missing: {', '.join(done.missing)} (the official site wants every file; {how})")
    print(f"submission: {done.path}")


def _most_frequent(suite: str, folder: Path) -> Predictions:
    """Return what the most-frequent baseline says of every task that has data."""
    from ensue.benchmarks.base import RunContext
    from ensue.benchmarks.nlu.submissions.grading import read_labels
    from ensue.benchmarks.nlu.systems import find, named

    system = find("majority")
    defaults = {name: setting.default for name, setting in system.settings.items()}
    tasks = list(read_labels(folder, suite).values())
    answers = system.answer(named("most-frequent"), tasks, defaults, 0, RunContext())
    return {one.task: {split: dict(found) for split, found in one.predictions.items()} for one in answers}


def _data_of(run: Path) -> Path:
    from ensue.report.results import read_run

    data = read_run(run).get("data")
    found = data.get("source") if isinstance(data, dict) else None
    if not isinstance(found, str) or not Path(found).expanduser().is_dir():
        raise EnsueError(f"{run} does not name a data folder that is here; give it with --data.")
    return Path(found).expanduser()


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
    from ensue.benchmarks.nlu.report.table import phenomena_tables, tables

    # Named as a run of these tasks is, so that the rest is not missed.
    asked = "/".join(filter(None, (done.suite, ",".join(chosen))))
    results = {"benchmark": asked, "model": f"{archive.name} on {split}", "metrics": done.metrics}
    console.print_tables([*tables(results), *phenomena_tables(results)])
    for note in done.notes:
        print(note)
    for file, why in done.not_scored.items():
        print(f"not scored: {file} ({why})")


def _people(path: Path, labels: Path, suite: str | None, split: str, tasks: list[str], json: bool) -> None:
    """The majority vote of an annotation file, judged as a system's answers are, and how far people agree."""
    from ensue.benchmarks.nlu.scores import rows
    from ensue.benchmarks.nlu.submissions.grading import read_labels
    from ensue.benchmarks.nlu.submissions.people import judge_people

    if suite is None or len(tasks) != 1:
        raise EnsueError(f"{path} holds labels of one task; say which, as in --suite superglue --tasks CB.")
    found = read_labels(labels, suite, tasks)
    if not found:
        raise EnsueError(f"{labels} has no files of {tasks[0]}; name the folder that holds its labels.")
    (data,) = found.values()
    people = judge_people(path, data, split)
    metrics = [row for row in rows([people.judged]) if row["metric"] != "score"] if people.judged else []
    if (agreement := people.agreement_row()) is not None:
        metrics.append(agreement)
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
