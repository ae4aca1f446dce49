"""`ensue submit`: a run's predictions as the file that a board takes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ensue import console
from ensue.errors import EnsueError


def submit(
    suite: Annotated[str, typer.Argument(help="The benchmark, such as superglue or discoeval.")],
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    output: Annotated[
        Path | None, typer.Option(help="The file to write (default: SUITE-SPLIT.… in the run folder).")
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
    from ensue.benchmarks.grading import grader_of
    from ensue.report.results import read_results

    grader = grader_of(suite)
    grader.choose_split(split)
    read_results(run)  # an unfinished run has no predictions to be sure of
    fill_from = (Path(data) if data else _data_of(run)) if fill_missing else None
    done = grader.submit(run, output, split, console.parse_settings(settings), fill_from)
    if json:
        console.print_json(done.as_dict())
        return
    for file, rows in done.files.items():
        print(f"{file}: {rows:,}" + (" (most frequent label)" if file in done.filled else ""))
    for note in done.notes:
        print(note)
    if done.missing:
        how = "no data for them either" if fill_missing else "--fill-missing adds the most frequent label"
        print(f"missing: {', '.join(done.missing)} (the official site wants every file; {how})")
    print(f"submission: {done.path}")


def _data_of(run: Path) -> Path:
    from ensue.report.results import read_run

    data = read_run(run).get("data")
    found = data.get("source") if isinstance(data, dict) else None
    if not isinstance(found, str) or not Path(found).expanduser().is_dir():
        raise EnsueError(f"{run} does not name a data folder that is here; give it with --data.")
    return Path(found).expanduser()
