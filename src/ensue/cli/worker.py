"""`ensue worker`: a process with a model, which answers what visitors of a server try."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ensue import console
from ensue.cli.serve import Folder, settings
from ensue.errors import EnsueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ensue.platform.trying.worker import Place


def worker(
    model: console.ModelName = "smollm2",
    to: Annotated[str | None, typer.Option(metavar="URL", help="The server, https://HOST.")] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="ENSUE_TOKEN", help="With --to: a token of an organiser or admin there (or ENSUE_TOKEN)."
        ),
    ] = None,
    home: Folder = None,
    qags: Annotated[
        bool | None,
        typer.Option("--qags/--no-qags", help="Question summaries too (default: where its models are here)."),
    ] = None,
    questioner: Annotated[
        str, typer.Option(metavar="MODEL", help="Model that asks about summaries.")
    ] = "smollm2-qg",
    answerer: Annotated[str, typer.Option(metavar="MODEL", help="Model that answers.")] = "minilm-qa",
    dtype: console.Dtype = "auto",
    device: console.Device = "auto",
    json: console.Json = False,
) -> None:
    """Answer with a model what visitors of a server try.

    Texts sentence by sentence, summaries with what is in doubt. Without --to it is the server of --home on
    this machine. The model is loaded once; Ctrl-C stops it.
    """
    find = _finding(to, token, home)
    from ensue.platform.trying.models import Qags, open_tasks
    from ensue.platform.trying.worker import Worker

    find()  # before models are loaded
    wanted = None if qags is False else Qags(questioner, answerer, required=bool(qags))
    tasks = open_tasks(model, wanted, {"dtype": dtype, "device": device}, console.say)

    def connected(url: str, id: str) -> None:
        if json:
            console.print_json({"url": url, "id": id, "offers": [offer._asdict() for offer in tasks]})
        offered = ", ".join(f"{offer.kind} with {offer.model}" for offer in tasks)
        console.say(f"Connected to {url}: {offered} (Ctrl-C stops it).")

    running = Worker(find, tasks, connected, console.say)
    signal.signal(signal.SIGTERM, _stop)
    try:
        running.run()
    except KeyboardInterrupt:
        console.say(f"Stopped; requests done: {running.done:,}.")


def _finding(to: str | None, token: str | None, home: Path | None) -> Callable[[], Place]:
    """Return what finds the server: at an address with a token, or of a home on this machine."""
    known = settings(home, None).home
    from ensue.platform.trying.worker import Place, place_of_home
    from ensue.runs.upload import address_of

    if to is None:
        return lambda: place_of_home(known)
    if home is not None:
        raise EnsueError("--to and --home name two servers; give one of them.")
    if token is None or not token.strip().isascii() or not token.strip().isprintable():
        raise EnsueError(
            "--to needs a token: give --token, or set ENSUE_TOKEN, from an organiser's account page."
        )
    place = Place(address_of(to, "").root, f"Bearer {token.strip()}")
    return lambda: place


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt
