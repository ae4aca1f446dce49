"""What several commands share: option types, progress bars, and where words go."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.errors import EnsueError
from ensue.text.visible import visible

if TYPE_CHECKING:
    from ensue.report.table import Table

MODEL_HELP = "Short name, folder, .gguf file, http(s):// endpoint or hub id."
ModelName = Annotated[str, typer.Option("--model", "-m", help=MODEL_HELP)]
Name = Annotated[
    str | None, typer.Option("--name", help="What to call the model in results (a folder's name by default).")
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")]
Format = Annotated[
    str, typer.Option("--format", help="How tables are printed: table, markdown, csv or latex.")
]
Dtype = Annotated[
    str, typer.Option(help="auto (bfloat16 on a GPU, else float32), float32, bfloat16 or float16.")
]
Compile = Annotated[
    str, typer.Option(help="Compile a causal model on a GPU: auto (where it is repaid), never or always.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Revision = Annotated[str | None, typer.Option(help="Revision of a hub model.")]
BatchTokens = Annotated[
    int | None, typer.Option(min=32, help="Tokens in one forward pass (default: by device).")
]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests under way at once, for an endpoint.")]
Timeout = Annotated[
    float, typer.Option(min=0.1, max=86_400, help="Seconds an endpoint may take for one reply.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load pickled weights, which can run code.")
]
RemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with a hub model.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting; lists by commas. Repeatable."),
]

ExecutorName = Annotated[
    str,
    typer.Option(
        "--executor",
        help="Where models run: local, ray (workers of this machine) or ray:ADDRESS (a cluster's).",
    ),
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="With --executor ray: how many (default: all there is room for).")
]
WorkerCpus = Annotated[
    float | None,
    typer.Option(min=0.01, help="With --executor ray: CPUs, and threads, a worker (default: 1)."),
]
WorkerGpus = Annotated[
    float | None,
    typer.Option(min=0, help="With --executor ray: GPUs a worker (default: 1 where there are any)."),
]


# The longest that a command without a terminal is silent while it makes progress.
_SECONDS_BETWEEN = 20.0


# The parameters that say how a command's model is loaded, with their defaults.
_MODEL_OPTIONS: Mapping[str, tuple[Any, Any]] = {
    "dtype": (Dtype, "auto"),
    "device": (Device, "auto"),
    "revision": (Revision, None),
    "batch_tokens": (BatchTokens, None),
    "compile": (Compile, "auto"),
    "concurrency": (Concurrency, 8),
    "timeout": (Timeout, 60.0),
    "allow_pickle": (AllowPickle, False),
    "trust_remote_code": (RemoteCode, False),
}


def takes_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command's options those that say how its model is loaded.

    The command has a parameter `name`, and gets it with the rest as `options`, which go to `load_model`.
    """

    @wraps(command)
    def with_options(**given: Any) -> None:
        options = {name: given.pop(name) for name in _MODEL_OPTIONS}
        command(**given, options={"name": given["name"], **options})

    return with_parameters(command, with_options, "options", _MODEL_OPTIONS)


def takes_executor(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command's options those that say where its models run; it gets what they choose as `executor`."""
    more = {
        "executor": (ExecutorName, "local"),
        "workers": (Workers, None),
        "worker_cpus": (WorkerCpus, None),
        "worker_gpus": (WorkerGpus, None),
    }

    @wraps(command)
    def with_executor(**given: Any) -> None:
        from ensue.executing import choose

        name, workers, cpus, gpus = (given.pop(option) for option in more)
        command(**given, executor=choose(name, workers=workers, cpus=cpus, gpus=gpus))

    return with_parameters(command, with_executor, "executor", more)


def with_parameters(
    command: Callable[..., None],
    wrapper: Callable[..., None],
    instead_of: str,
    more: Mapping[str, tuple[Any, Any]],
) -> Callable[..., None]:
    """Give a wrapper the command's signature with more options in place of one parameter."""
    own = dict(signature(command, eval_str=True).parameters)
    del own[instead_of]
    added = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in more.items()
    ]
    wrapper.__signature__ = Signature([*own.values(), *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {one.name: one.annotation for one in (*own.values(), *added)}
    return wrapper


def parse_settings(pairs: list[str] | None) -> dict[str, str]:
    """`key=value` pairs as a mapping; each key may be given once."""
    found: dict[str, str] = {}
    for pair in pairs or []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise EnsueError(f"--set {pair} is not of the form key=value.")
        name = key.strip().replace("-", "_")
        if name in found:
            raise EnsueError(f"--set {name} is given twice, as {found[name]} and {value}; leave one out.")
        found[name] = value
    return found


def settings_beside(
    pairs: list[str] | None, function: Callable[..., Any], own: Mapping[str, str]
) -> dict[str, Any]:
    """Return the settings that `function` is given: `own`, which options name, and the pairs, which may name no other
    parameter of it."""
    chosen = parse_settings(pairs)
    for key in (key for key in chosen if key in own or key in signature(function).parameters):
        raise EnsueError(
            f"{key} is given with an option, not with --set: leave out --set {key}={chosen[key]}."
        )
    return {**own, **chosen}


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)


def print_answer(answer: Any, json: bool, words: str) -> None:
    """Print what a command did: JSON, or words for people."""
    if json:
        print_json(answer)
    else:
        print(words)


def print_tables(tables: Sequence[Table], form: str = "table") -> None:
    """Print tables on standard output, on a terminal or as text of another format."""
    from ensue.report.table import check_format, render

    check_format(form)
    if form != "table":
        print(render(tables, form), end="")
        return
    from rich.console import Console

    screen = Console(soft_wrap=False)
    for table in tables:
        drawn = table.to_rich()
        # Where not even the numbers find room, lines are longer than the terminal and nothing is left out.
        least = drawn.__rich_measure__(screen, screen.options).minimum
        (screen if least <= screen.width else Console(soft_wrap=True, width=least)).print(drawn)


def say(words: str) -> None:
    """Print a line for people on standard error."""
    print(visible(words), file=sys.stderr, flush=True)


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Ctrl-C ends the command with a sentence about what is kept, exit code 1."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"ensue: stopped; {kept}.")
        sys.exit(1)


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[..., None]]:
    """Show progress on standard error: a bar on a terminal, now and then a line elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines(title)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None, unit="")

        def update(done: int, total: int, unit: str = "tokens") -> None:
            bar.update(task, completed=done, total=total or None, unit=unit)

        yield update


class _Lines:
    """Progress where there is no terminal: a line for every tenth done, and now and then one in between.

    A total of 0 is one that nobody knows, so only what is done is said.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.about: tuple[int, str] = (-1, "")
        self.tenth, self.said = -1, 0.0

    def __call__(self, done: int, total: int, unit: str = "tokens") -> None:
        percent = 100 * done // total if total else 0
        now = time.monotonic()
        # A run of several tasks begins anew with each.
        anew = (total, unit) != self.about
        if anew or percent // 10 > self.tenth or now - self.said >= _SECONDS_BETWEEN:
            self.about, self.tenth, self.said = (total, unit), percent // 10, now
            if not total:
                say(f"{self.title}: {done:,} {unit}")
                return
            # Of a training that may end long before its last update, whole percents would all be 0.
            shown = f"{percent}" if percent >= 10 else f"{100 * done / total:.2g}"
            say(f"{self.title}: {shown} % of {total:,} {unit}")
