"""`ensue run`: a benchmark, a model, a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ensue import console

# What `runs.run` takes beside a benchmark's settings.


@console.takes_executor
@console.takes_model_options
def run(
    benchmark: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK[/TASK]",
            help="shuffle, insertion, ordering, intruder, pairs, ratings, transfer, chapterbreak, discoeval, "
            "senteval, glue, superglue, qags, squality, or one of another package; tasks by commas.",
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
            help="File, folder or hub data set (shuffle, intruder: bundled documents if not given)."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only the first N documents.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
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

    check_format(form)
    own = {"mode": mode, "intermediate": intermediate, "chat": "yes" if chat else None}
    own = {key: value for key, value in own.items() if value}
    chosen = console.settings_beside(settings, run_benchmark, own)
    kept = "what was scored is kept: run the same command with --resume to go on"
    with (
        console.stoppable(kept),
        console.progress_bar(" ".join(filter(None, (benchmark, name or model)))) as progress,
    ):
        done = run_benchmark(
            benchmark,
            model=model,
            data=data,
            limit=limit,
            seed=seed,
            output=output,
            resume=resume,
            model_options=options,
            executor=executor,
            progress=progress,
            **chosen,
        )
    results = done.results
    page = None
    if report:
        from ensue.runs.report import write_report

        page = write_report(done.folder)
    if json:
        console.print_json({**results, "folder": str(done.folder), "report": str(page) if page else None})
        return
    from ensue.runs.tables import metrics_tables

    console.print_tables(metrics_tables(results, done.folder), form)
    tell = print if form == "table" else console.say
    for reason, count in {**results["skipped"], **results.get("notes", {})}.items():
        tell(f"{reason}: {count}")
    tell(results["signature"])
    tell(f"run folder: {done.folder}" + ("" if done.computed else " (finished before: read, not run again)"))
    if page:
        tell(f"report: {page}")
