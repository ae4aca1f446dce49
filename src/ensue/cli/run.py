"""`ensue run`: a benchmark, a model, a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue import console
from ensue.benchmarks import registry

if TYPE_CHECKING:
    from ensue.runs.run import Run


@console.takes_executor
@console.takes_model_options
def run(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK[/TASK]",
            help=f"{', '.join(registry.names())}; tasks by commas.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help=f"{console.MODEL_HELP} [default: the benchmark's own]"),
    ] = None,
    name: console.Name = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="File, folder or hub data set (default: what comes with the benchmark, if anything does)."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N documents.")] = None,
    seed: Annotated[
        str,
        typer.Option(metavar="S[,S…]", help="Random seed; several, separated by commas, give a run each."),
    ] = "0",
    output: Annotated[
        Path | None, typer.Option(help="Run folder (default: runs/BENCHMARK-MODEL-HASH).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an unfinished run.")] = False,
    settings: console.Settings = None,
    mode: Annotated[
        str | None,
        typer.Option(help="glue, superglue: majority, prompt, generate, frozen, train or finetune."),
    ] = None,
    intermediate: Annotated[
        str | None, typer.Option(help="Fine-tuning: train on this first (mnli, swag or a file).")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Prompted tasks: put each prompt into the model's chat template.")
    ] = False,
    form: console.Format = "table",
    report: Annotated[bool, typer.Option("--report", help="Write report.html too.")] = False,
    json: console.Json = False,
    *,
    options: dict[str, Any],
    executor: Any,
) -> None:
    """Run a benchmark with a model and write a run folder."""
    from ensue.report.table import check_format
    from ensue.runs.run import run as run_benchmark
    from ensue.runs.sweep import sweep

    check_format(form)
    seeds = _seeds(seed)
    options_of_tasks = {"mode": mode, "intermediate": intermediate, "chat": "yes" if chat else None}
    own = {key: value for key, value in options_of_tasks.items() if value}
    chosen = console.settings_beside(settings, run_benchmark, own)
    kept = "what was scored is kept: run the same command with --resume to go on"
    with (
        console.stoppable(kept),
        console.progress_bar(" ".join(filter(None, (benchmark, name or model)))) as progress,
    ):
        given = {
            "model": model,
            "data": data,
            "limit": limit,
            "output": output,
            "resume": resume,
            "model_options": options,
            "executor": executor,
            "progress": progress,
            **chosen,
        }
        done = (
            [run_benchmark(benchmark, seed=seeds[0], **given)]
            if len(seeds) == 1
            else sweep(benchmark, seed=seeds, **given)
        )
    pages = [_page(one) if report else None for one in done]
    if json:
        shown = [
            {**one.results, "folder": str(one.folder), "report": page and str(page)}
            for one, page in zip(done, pages, strict=True)
        ]
        console.print_json(shown[0] if len(seeds) == 1 else {"runs": shown})
        return
    for number, one, page in zip(seeds, done, pages, strict=True):
        if len(seeds) > 1:
            (print if form == "table" else console.say)(f"seed {number}")
        _show(one, page, form)


def _seeds(seed: str) -> list[int]:
    try:
        return [int(one) for one in seed.split(",")]
    except ValueError:
        said = f"{seed!r} is not a whole number, nor several separated by commas."
        raise typer.BadParameter(said, param_hint="'--seed'") from None


def _page(done: Run) -> Path:
    from ensue.runs.report import write_report

    return write_report(done.folder)


def _show(done: Run, page: Path | None, form: str) -> None:
    """Print a run's results, what was left out, and where it lies."""
    from ensue.runs.tables import metrics_tables

    results = done.results
    console.print_tables(metrics_tables(results, done.folder), form)
    show = print if form == "table" else console.say
    for reason, count in {**results["skipped"], **results.get("notes", {})}.items():
        show(f"{reason}: {count}")
    show(results["signature"])
    show(f"run folder: {done.folder}" + ("" if done.computed else " (finished before: read, not run again)"))
    if page:
        show(f"report: {page}")
