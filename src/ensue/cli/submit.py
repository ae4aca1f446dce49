"""`ensue submit`: a run's predictions as the file that a board takes, written and, with --to, sent there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue import console
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from ensue.benchmarks.grading import Submitted


def submit(
    suite: Annotated[str, typer.Argument(help="The benchmark, such as superglue or discoeval.")],
    run: Annotated[Path, typer.Argument(help="A run folder; with --to, also a submission written before.")],
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
    to: Annotated[
        str | None, typer.Option(metavar="URL", help="Send it to this board, https://HOST/boards/NAME.")
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="ENSUE_TOKEN", help="With --to: your token there (or ENSUE_TOKEN).")
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="With --to: what to call the system (default: the run's model).")
    ] = None,
    description: Annotated[str | None, typer.Option(help="With --to: what it is, in a few words.")] = None,
    parameters: Annotated[
        str | None, typer.Option(help="With --to: how many parameters, and which are shared.")
    ] = None,
    training_data: Annotated[str | None, typer.Option(help="With --to: what it was trained on.")] = None,
    link: Annotated[str | None, typer.Option(help="With --to: where more is said about it.")] = None,
    sharing: Annotated[
        str | None, typer.Option(help="With --to: which parameters tasks share, if not said before.")
    ] = None,
    affiliation: Annotated[
        str | None, typer.Option(help="With --to: the team (default: your account's affiliation or name).")
    ] = None,
    code: Annotated[str | None, typer.Option(help="With --to: where its code is.")] = None,
    email: Annotated[str | None, typer.Option(help="With --to: an address for organisers alone.")] = None,
    json: console.Json = False,
) -> None:
    """Write a run's predictions as a submission; send it to a board.

    Where a run answered in several ways, --set picks one (as in --set template=question).
    """
    about = {
        "system": system,
        "description": description,
        "parameters": parameters,
        "data": training_data,
        "link": link,
        "sharing": sharing,
        "affiliation": affiliation,
        "code": code,
        "email": email,
    }
    given = {name: value for name, value in about.items() if value is not None}
    if to is None and given:
        raise EnsueError(f"What is said about the system ({', '.join(given)}) goes with --to URL.")
    if to is not None and token is None:
        raise EnsueError("--to needs a token: give --token, or set ENSUE_TOKEN, from your account's page.")
    written = None
    if not run.is_file():
        written = _write(suite, run, output, split, settings, fill_missing, data)
    elif to is None:
        raise EnsueError(f"{run} is a file, which can only be sent; add --to URL, or name a run folder.")
    if written is not None and not json:
        _tell(written, fill_missing)
    if to is not None and token is not None:
        _send(to, suite, run, written, token, given, json)
    elif written is not None and json:
        console.print_json(written.as_dict())


def _write(
    suite: str,
    run: Path,
    output: Path | None,
    split: str,
    settings: list[str] | None,
    fill_missing: bool,
    data: str | None,
) -> Submitted:
    from ensue.benchmarks.grading import SubmitRequest, grader_of
    from ensue.report.results import read_results

    grader = grader_of(suite)
    grader.choose_split(split)
    # An unfinished run has no predictions to be sure of.
    ran = str(read_results(run).get("benchmark", suite)).partition("/")[0]
    if ran != suite and not suite.endswith(".toml"):
        raise EnsueError(
            f"{run} is a run of {ran}, not of {suite}, so it has no predictions to submit to it."
        )
    fill_from = (Path(data) if data else _data_of(run)) if fill_missing else None
    return grader.submit(SubmitRequest(run, output, split, console.parse_settings(settings), fill_from))


def _tell(done: Submitted, fill_missing: bool) -> None:
    for file, rows in done.files.items():
        print(f"{file}: {rows:,}" + (" (most frequent label)" if file in done.filled else ""))
    for note in done.notes:
        print(note)
    if done.missing:
        how = "no data for them either" if fill_missing else "--fill-missing adds the most frequent label"
        print(f"missing: {', '.join(done.missing)} (the official site wants every file; {how})")
    print(f"submission: {done.path}")


def _send(
    to: str,
    suite: str,
    run: Path,
    written: Submitted | None,
    token: str,
    about: dict[str, str],
    json: bool,
) -> None:
    """Send what was written, or a file as it is."""
    from ensue.report.results import read_run
    from ensue.runs.upload import NotTaken, address_of, key_of, send

    file, folder = (run, None) if written is None else (written.path, run)
    if folder is not None and "system" not in about:
        model = read_run(folder).get("model")
        name = model.get("name") if isinstance(model, dict) else None
        about = {"system": name, **about} if isinstance(name, str) else about
    try:
        sent = send(address_of(to, suite), file, token, about, key_of(file, folder, about))
    except NotTaken as refused:
        if json:
            console.print_json({"problems": refused.problems})
        raise
    if json:
        console.print_json({**sent._asdict(), "file": str(file)})
        return
    place = "" if not sent.position else f", place {sent.position:,} in the queue"
    print(f"sent: {sent.id} is {sent.state}{place}: {sent.page}")


def _data_of(run: Path) -> Path:
    from ensue.report.results import read_run

    data = read_run(run).get("data")
    found = data.get("source") if isinstance(data, dict) else None
    if not isinstance(found, str) or not Path(found).expanduser().is_dir():
        raise EnsueError(f"{run} does not name a data folder that is here; give it with --data.")
    return Path(found).expanduser()
