"""`ensue submit`: a run's predictions as the zip that the official sites take."""

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
    from ensue.benchmarks.nlu.submissions.formats import files_of, specs_of
    from ensue.benchmarks.nlu.submissions.submission import collect, write_submission
    from ensue.report.reading import ITEMS_FILE, read_numbered_items, read_results

    if split not in (TEST, DEV):
        raise EnsueError(f"--split {split} is none of {TEST}, {DEV}.")
    specs = specs_of(suite)
    read_results(run)  # an unfinished run has no predictions to be sure of
    chosen = console.parse_settings(settings)
    predictions = collect(read_numbered_items(run), run / ITEMS_FILE, suite, split, chosen)
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
    """What the most-frequent baseline says of every task that has data."""
    from ensue.backends.names import load_model
    from ensue.benchmarks.base import RunContext
    from ensue.benchmarks.nlu.submissions.grading import read_labels
    from ensue.benchmarks.nlu.systems import find

    system = find("majority")
    defaults = {name: setting.default for name, setting in system.settings.items()}
    tasks = list(read_labels(folder, suite).values())
    answers = system.answer(load_model("most-frequent"), tasks, defaults, 0, RunContext())
    return {
        answered.task: {split: dict(found) for split, found in answered.predictions.items()}
        for answered in answers
    }


def _data_of(run: Path) -> Path:
    from ensue.report.reading import read_run

    data = read_run(run).get("data")
    found = data.get("source") if isinstance(data, dict) else None
    if not isinstance(found, str) or not Path(found).expanduser().is_dir():
        raise EnsueError(f"{run} does not name a data folder that is here; give it with --data.")
    return Path(found).expanduser()
